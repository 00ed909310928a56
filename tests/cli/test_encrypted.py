"""`migrate --encrypted`, and the commands that then refuse to start without keys."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import KeyRing, Ledger
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import TABLES, query

KEY = bytes(32)


@pytest.fixture
def url(database: Database) -> str:
    """A database that is recorded as encrypted, with a thread."""

    async def fill() -> None:
        async with Ledger.open(database.url, encryption=KeyRing({"k1": KEY})) as ledger:
            await ledger.user("ada").threads.create("t", title="words")
            await ledger.messages.append("t", turn())

    asyncio.run(fill())
    recorded = chatledger("migrate", "--encrypted", "--json", url=database.url)
    assert (recorded.code, recorded.json["encrypted"]) == (0, True)
    return database.url


def rows(database: Database) -> list[list[tuple[Any, ...]]]:
    """All rows that hold content."""
    return [asyncio.run(query(database, f"SELECT * FROM {table}")) for table in TABLES]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    ring = {"keys": {"k1": base64.b64encode(KEY).decode()}}
    file.write_text(json.dumps({"default": ring, "new": ring}))
    file.chmod(0o600)
    return file


SHOW_OR_STORE = [
    *("serve", "threads", "show t", "prompt t", "check", "search words", "export", "check --fix --dry-run", "drafts"),
    *("runs list", "feedback list", "erase-message t m --yes", "archive t", "import -", "demo", "reencrypt"),
    "mcp --user ada",
]


@pytest.mark.parametrize("tenant", ["default", "new"])
@pytest.mark.parametrize("words", SHOW_OR_STORE)
def test_a_command_that_shows_or_stores_content_does_not_start_without_keys(
    database: Database, url: str, words: str, tenant: str
) -> None:
    before = rows(database)
    refused = chatledger(*words.split(), "--tenant", tenant, url=url, given=b'[{"role": "user", "content": "plain"}]')
    assert (refused.code, refused.out) == (3, "")
    assert (
        f"tenant '{tenant}' is encrypted; open the ledger with encryption=…, or give `chatledger --keys FILE"
        in refused.err
    )
    assert rows(database) == before


@pytest.mark.parametrize(
    "words",
    [
        *("schema", "migrate", "branches list t", "erasures", "stats", "runs usage"),
        *("delete t --yes", "erase --user ada --yes", "delete-inactive --older-than 1d --yes"),
    ],
)
def test_other_commands_need_no_keys(url: str, words: str) -> None:
    done = chatledger(*words.split(), url=url)
    assert (done.code, "encrypted;" in done.err) == (0, False)


def test_a_backup_needs_no_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")
    assert chatledger("migrate", "--encrypted", url=path).code == 0
    assert chatledger("backup", "copy.db", url=path, cwd=tmp_path).code == 0
    assert chatledger("schema", "--json", url=str(tmp_path / "copy.db")).json["encrypted"] is True


def test_with_keys_every_tenant_is_shown_and_stored(url: str, keys: Path) -> None:
    assert chatledger("--keys", keys, "show", "t", url=url).code == 0
    given = b'[{"role": "user", "content": "plain"}]'
    assert chatledger("--keys", keys, "import", "-", "--tenant", "new", url=url, given=given).code == 0


def test_the_schema_says_that_the_database_is_encrypted(url: str) -> None:
    assert chatledger("schema", url=url).out.endswith(", encrypted\n")
    assert chatledger("schema", "--json", url=url).json["encrypted"] is True


def test_the_schema_of_another_database_does_not(database: Database) -> None:
    other = database.url
    assert chatledger("migrate", "--json", url=other).json["encrypted"] is False
    for refused in (["--to", "0005"], ["--sql"]):
        assert chatledger("migrate", "--encrypted", *refused, url=other).code == 2
