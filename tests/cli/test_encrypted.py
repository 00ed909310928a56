"""`migrate --encrypted`, and the commands that then refuse to start without keys."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest

from chatledger import KeyRing, Ledger
from tests.cli.commands import chatledger
from tests.conversations import turn

KEY = bytes(32)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database that is recorded as encrypted, with a thread."""
    path = str(tmp_path / "l.db")

    async def fill() -> None:
        async with Ledger.open(path, keys=KeyRing({"k1": KEY})) as ledger:
            await ledger.threads.create("t", user_id="ada", title="words")
            await ledger.messages.append("t", turn())

    asyncio.run(fill())
    recorded = chatledger("migrate", "--encrypted", "--json", url=path)
    assert (recorded.code, recorded.json["encrypted"]) == (0, True)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    ring = {"keys": {"k1": base64.b64encode(KEY).decode()}}
    file.write_text(json.dumps({"default": ring, "new": ring}))
    file.chmod(0o600)
    return file


SHOW_OR_STORE = [
    *("serve", "threads", "show t", "history t", "check", "search words", "export", "repair --dry-run", "partials"),
    *("runs list", "feedback list", "redact t 1 --yes", "archive t", "import -", "demo", "reencrypt"),
]


@pytest.mark.parametrize("tenant", ["default", "new"])
@pytest.mark.parametrize("words", SHOW_OR_STORE)
def test_a_command_that_shows_or_stores_content_does_not_start_without_keys(url: str, words: str, tenant: str) -> None:
    refused = chatledger(*words.split(), "--tenant", tenant, url=url, given=b'[{"role": "user", "content": "plain"}]')
    assert (refused.code, refused.out) == (3, "")
    assert (
        f"tenant '{tenant}' is encrypted; open the ledger with keys=…, or give `chatledger --keys FILE" in refused.err
    )
    assert b"plain" not in b"".join(file.read_bytes() for file in Path(url).parent.glob("l.db*"))


@pytest.mark.parametrize(
    "words",
    [
        *("schema", "migrate", "branches list t", "erasures", "stats", "runs usage"),
        *("delete t --yes", "erase --user ada --yes", "retain --older-than 1d --yes", "backup copy.db"),
    ],
)
def test_other_commands_need_no_keys(url: str, words: str, tmp_path: Path) -> None:
    done = chatledger(*words.split(), url=url, cwd=tmp_path)
    assert (done.code, "encrypted;" in done.err) == (0, False)


def test_with_keys_every_tenant_is_shown_and_stored(url: str, keys: Path) -> None:
    assert chatledger("--keys", keys, "show", "t", url=url).code == 0
    given = b'[{"role": "user", "content": "plain"}]'
    assert chatledger("--keys", keys, "import", "-", "--tenant", "new", url=url, given=given).code == 0


def test_the_schema_says_that_the_database_is_encrypted(url: str, tmp_path: Path) -> None:
    assert chatledger("schema", url=url).out.endswith(", encrypted\n")
    assert chatledger("schema", "--json", url=url).json["encrypted"] is True
    other = str(tmp_path / "other.db")
    assert chatledger("migrate", "--json", url=other).json["encrypted"] is False
    for refused in (["--to", "0005"], ["--sql"]):
        assert chatledger("migrate", "--encrypted", *refused, url=other).code == 2
