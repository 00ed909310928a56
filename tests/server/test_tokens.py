"""The file of tokens."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chatledger import InvalidArgument, Ledger
from chatledger.server import Caller, TokenFile, create_app
from chatledger.server.callers.token_entries import hash_of
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
        ["id", "sha256", "tenant", "user_id", "scope", "created_at"],
        ["id", "sha256", "tenant", "admin", "scope", "created_at"],
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
    {"sha256": HASH, "user_id": "ada", "scope": "all"},
    {"sha256": HASH, "user_id": "ada", "scope": "operator"},
    {"sha256": HASH, "admin": True, "scope": "ask"},
    {"sha256": HASH, "user_id": "ada", "id": 5},
    {"sha256": HASH, "user_id": "ada", "id": ""},
    {"sha256": HASH, "user_id": "ada", "name": 5},
    {"sha256": HASH, "user_id": "ada", "expires_at": "soon"},
    {"sha256": HASH, "user_id": "ada", "expires_at": "2026-01-01T00:00:00"},
    {"sha256": HASH, "user_id": "ada", "expires_at": 5},
    "cl_secret",
]


@pytest.mark.parametrize("entry", WRONG, ids=str)
def test_an_entry_of_another_form_is_refused(path: Path, entry: Any) -> None:
    write(path, {"sha256": HASH, "user_id": "bob"}, entry)
    with pytest.raises(InvalidArgument, match="another form") as raised:
        TokenFile(path)
    assert "cl_secret" not in str(raised.value)


def test_an_entry_of_an_earlier_release_may_write_and_has_an_id(path: Path) -> None:
    write(path, {"sha256": hash_of("cl_old"), "user_id": "ada"}, {"sha256": hash_of("cl_admin"), "admin": True})
    tokens = TokenFile(path)
    ada = tokens.find("cl_old")
    assert ada is not None
    assert ada == Caller("ada", scope="write")
    assert ada.token_id == hash_of("cl_old")[:12]
    assert tokens.find_entry(ada.token_id) == ada
    assert tokens.find("cl_admin") == Caller(admin=True, scope="write")


def test_an_entry_keeps_its_scope_name_and_end(path: Path) -> None:
    tokens = TokenFile.create(path)
    end = datetime(2100, 1, 2, tzinfo=UTC)
    made = {
        scope: tokens.add(Caller("ada", scope=scope), name=f"ada's {scope}", expires_at=end)
        for scope in ("read", "ask", "write")
    }
    made["operator"] = tokens.add(Caller(scope="operator"), name="ada's operator", expires_at=end)
    read = TokenFile(path)
    assert [(one.name, one.expires_at) for one in read.entries()] == [(f"ada's {scope}", end) for scope in made]
    for entry, (scope, token) in zip(read.entries(), made.items(), strict=True):
        found = read.find(token)
        assert found is not None
        assert (found.scope, found.token_id) == (scope, entry.id)
        assert found == read.find_entry(entry.id) == entry.caller


def test_a_token_whose_time_is_over_is_refused(path: Path) -> None:
    hashed = hash_of("cl_a")
    write(path, {"sha256": hashed, "user_id": "ada", "id": "a", "expires_at": "2100-01-01T00:00:00Z"})
    tokens = TokenFile(path)
    assert tokens.find("cl_a") == tokens.find_entry("a") == Caller("ada")
    write(path, {"sha256": hashed, "user_id": "ada", "id": "a", "expires_at": "2026-01-01T00:00:00+00:00"})
    assert tokens.find("cl_a") is tokens.find_entry("a") is None
    assert [one.id for one in tokens.entries()] == ["a"]


WITHOUT_ZONE = datetime(2100, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize("end", [WITHOUT_ZONE, datetime(2020, 1, 1, tzinfo=UTC), "2100-01-01"], ids=str)
def test_a_new_token_ends_at_a_time_to_come(path: Path, end: Any) -> None:
    tokens = TokenFile.create(path)
    with pytest.raises(InvalidArgument, match="expires_at"):
        tokens.add(Caller("ada"), expires_at=end)
    assert tokens.entries() == []


def test_a_revoked_token_is_gone_and_the_others_stay_as_they_are(path: Path) -> None:
    other = {"sha256": HASH, "user_id": "bob", "note": "by hand"}
    write(path, other)
    tokens = TokenFile(path)
    token = tokens.add(Caller("ada"), name="phone")
    ada = tokens.find(token)
    assert ada is not None
    assert ada.token_id is not None
    assert tokens.revoke(ada.token_id).name == "phone"
    assert tokens.find(token) is tokens.find_entry(ada.token_id) is None
    assert json.loads(path.read_text()) == {"tokens": [other]}
    with pytest.raises(InvalidArgument, match="token list"):
        tokens.revoke(ada.token_id)


def test_two_entries_with_one_id_are_refused(path: Path) -> None:
    write(path, {"sha256": HASH, "user_id": "bob", "id": "a"}, {"sha256": "1" * 64, "user_id": "ada", "id": "a"})
    with pytest.raises(InvalidArgument, match="the same id"):
        TokenFile(path)


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
    hashed = hash_of(token)
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


def test_the_command_makes_a_token_for_a_user_an_administrator_or_an_operator(path: Path, tmp_path: Path) -> None:
    made = chatledger("token", "add", "--tokens", path, "--user", "ada", "--scope", "ask", "--name", "phone",
                      "--expires", "2100-01-01", "--json", cwd=tmp_path).json  # fmt: skip
    assert TokenFile(path).find(made.pop("token")) == Caller("ada", scope="ask")
    [entry] = TokenFile(path).entries()
    assert made == {
        "id": entry.id,
        "name": "phone",
        "tenant": "default",
        "user_id": "ada",
        "admin": False,
        "scope": "ask",
        "created_at": entry.created_at,
        "expires_at": "2100-01-01T00:00:00+00:00",
    }
    printed = chatledger("token", "add", "--tokens", path, "--admin", "--tenant", "acme", cwd=tmp_path)
    assert TokenFile(path).find(printed.out.strip()) == Caller(admin=True, tenant="acme")
    printed = chatledger("token", "add", "--tokens", path, "--operator", cwd=tmp_path)
    assert TokenFile(path).find(printed.out.strip()) == Caller(scope="operator")


def test_the_command_of_earlier_releases_still_adds_a_token(path: Path, tmp_path: Path) -> None:
    printed = chatledger("token", "--tokens", path, "--user", "ada", cwd=tmp_path)
    assert TokenFile(path).find(printed.out.strip()) == Caller("ada")
    assert "revoke" in chatledger("token", "--help", cwd=tmp_path).out


def test_tokens_are_listed_and_revoked_by_their_ids(path: Path, tmp_path: Path) -> None:
    write(path, {"sha256": HASH, "user_id": "bob"}, {"sha256": "1" * 64, "admin": True, "expires_at": "2020-01-01T00Z"})
    listed = chatledger("token", "list", "--tokens", path, "--json", cwd=tmp_path).json
    assert [(one["id"], one["user_id"], one["scope"]) for one in listed["items"]] == [
        ("0" * 12, "bob", "write"),
        ("1" * 12, None, "write"),
    ]
    shown = chatledger("token", "list", "--tokens", path, cwd=tmp_path).out
    assert "user bob" in shown
    assert "(over)" in shown
    assert HASH not in shown
    assert "user bob" in chatledger("token", "revoke", "0" * 12, "--tokens", path, cwd=tmp_path).out
    assert [one.id for one in TokenFile(path).entries()] == ["1" * 12]
    unknown = chatledger("token", "revoke", "0" * 12, "--tokens", path, cwd=tmp_path)
    assert (unknown.code, "token list" in unknown.error) == (2, True)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--user", "ada", "--admin"],
        ["--admin", "--operator"],
        ["--operator", "--scope", "read"],
        ["--admin", "--scope", "ask"],
        ["--user", "ada", "--expires", "2020-01-01"],
    ],
    ids=str,
)
def test_the_command_refuses_what_makes_no_token(path: Path, tmp_path: Path, options: list[str]) -> None:
    for words in (["token"], ["token", "add"]):
        refused = chatledger(*words, "--tokens", path, *options, cwd=tmp_path)
        assert refused.code == 2, refused
    assert not path.exists() or TokenFile(path).entries() == []


@pytest.mark.parametrize("command", [["list"], ["revoke", "a"]], ids=str)
def test_the_command_makes_no_file_where_there_is_none(path: Path, tmp_path: Path, command: list[str]) -> None:
    assert chatledger("token", *command, "--tokens", path, cwd=tmp_path).code == 2
    assert not path.exists()
