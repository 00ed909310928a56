"""The file of tokens."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from chatledger import InvalidArgument, Ledger
from chatledger.server import Caller, TokenFile, create_app
from tests.cli.commands import chatledger
from tests.server.conftest import client_of, json_of

HASH = "0" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def write(path: Path, *entries: Any) -> None:
    overwrite(path, json.dumps({"tokens": list(entries)}))


def overwrite(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)


def test_a_token_is_stored_as_its_hash_and_names_its_caller(path: Path) -> None:
    tokens = TokenFile.create(path)
    ada = tokens.add(Caller("ada", tenant="acme"))
    admin = tokens.add(Caller(admin=True))
    assert ada not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for read in (tokens, TokenFile(path)):
        assert read.find(ada) == Caller("ada", tenant="acme")
        assert read.find(admin) == Caller(admin=True)
        assert [read.find(wrong) for wrong in (None, "", "cl_", ada + "x", ada.upper())] == [None] * 5
    assert [list(one) for one in json.loads(path.read_text())["tokens"]] == [
        ["sha256", "tenant", "user_id", "created_at"],
        ["sha256", "tenant", "admin", "created_at"],
    ]


WRONG: list[Any] = [
    {},
    {"sha256": HASH},
    {"user_id": "ada"},
    {"sha256": "cl_secret", "user_id": "ada"},
    {"sha256": HASH, "user_id": None},
    {"sha256": HASH, "user_id": 5},
    {"sha256": HASH, "user_id": "ada", "admin": True},
    {"sha256": HASH, "admin": False},
    {"sha256": HASH, "admin": "yes"},
    {"sha256": HASH, "user_id": "ada", "tenant": None},
    "cl_secret",
]


@pytest.mark.parametrize("entry", WRONG, ids=str)
def test_an_entry_of_another_form_is_refused(path: Path, entry: Any) -> None:
    write(path, {"sha256": HASH, "user_id": "bob"}, entry)
    with pytest.raises(InvalidArgument, match="another form") as raised:
        TokenFile(path)
    assert "cl_secret" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"tokens": 5}', '{"tokens": {"a": 1}}', "\ufeff{}"])
def test_a_file_of_another_form_is_refused(path: Path, text: str) -> None:
    overwrite(path, text)
    with pytest.raises(InvalidArgument, match="another form"):
        TokenFile(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    write(path)
    path.chmod(mode)
    with pytest.raises(InvalidArgument, match=f"chmod 600 {path}"):
        TokenFile(path)


def test_a_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        TokenFile(path)


async def test_a_token_counts_from_the_next_request_until_it_is_removed(ledger: Ledger, path: Path) -> None:
    tokens = TokenFile.create(path)
    app = create_app(ledger, authenticate=tokens)
    token = TokenFile(path).add(Caller("ada"))  # as another process does
    async with client_of(app, None, Authorization=f"bearer {token}") as ada:
        assert json_of(await ada.get("/v1/me"))["user_id"] == "ada"
        write(path)
        assert (await ada.get("/v1/me")).status_code == 401


async def test_a_file_that_breaks_while_the_server_runs_lets_nobody_in(ledger: Ledger, path: Path) -> None:
    tokens = TokenFile.create(path)
    app = create_app(ledger, authenticate=tokens)
    token = tokens.add(Caller("ada"))
    hashed = hashlib.sha256(token.encode()).hexdigest()
    async with client_of(app, None, Authorization=f"Bearer {token}") as ada:
        overwrite(path, "{")
        for _ in range(2):
            refused = await ada.get("/v1/me")
            assert json_of(refused, 503)["type"] == "urn:chatledger:TokensUnreadable"
            assert str(path) not in refused.text
        write(path, {"sha256": hashed, "user_id": "ada"})
        json_of(await ada.get("/v1/me"))


async def test_two_users_see_their_own_threads(ledger: Ledger, path: Path) -> None:
    tokens = TokenFile.create(path)
    app = create_app(ledger, authenticate=tokens)
    for user in ("ada", "bob"):
        await ledger.user(user).threads.create(f"{user}'s")
        async with client_of(app, None, Authorization=f"Bearer {tokens.add(Caller(user))}") as client:
            listed = json_of(await client.get("/v1/threads"))["items"]
            assert [thread["thread_id"] for thread in listed] == [f"{user}'s"]


def test_the_command_makes_a_token_for_a_user_or_an_administrator(path: Path, tmp_path: Path) -> None:
    made = chatledger("token", "--tokens", path, "--user", "ada", "--json", cwd=tmp_path).json
    assert TokenFile(path).find(made.pop("token")) == Caller("ada")
    assert made == {"tenant": "default", "user_id": "ada", "admin": False}
    printed = chatledger("token", "--tokens", path, "--admin", "--tenant", "acme", cwd=tmp_path)
    assert TokenFile(path).find(printed.out.strip()) == Caller(admin=True, tenant="acme")


@pytest.mark.parametrize("options", [[], ["--user", "ada", "--admin"]])
def test_the_command_asks_for_one_of_them(path: Path, tmp_path: Path, options: list[str]) -> None:
    assert chatledger("token", "--tokens", path, *options, cwd=tmp_path).code == 2
    assert not path.exists()
