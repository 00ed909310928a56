"""A command that reads never writes: neither rows nor a newer schema. Every command there is has a place in a list
here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from chatledger import Feedback, Ledger
from chatledger.admin import migrate, schema_status
from tests.cli.commands import Outcome, chatledger
from tests.conftest import Database
from tests.conversations import assistant, call, turn, user
from tests.docs.command_line import commands
from tests.migrations.access import all_rows
from tests.migrations.catalog import read_catalog
from tests.migrations.revisions import HEAD, below
from tests.storage.raw import query

READS = [
    "threads",
    "show t",
    "show --latest --html {folder}/page.html",
    "prompt t",
    "show t --format openai-chat",
    "check",
    "check t",
    "search Lima",
    "search Lima --threads",
    "export t",
    "export --all",
    "export --jsonl",
    "export --parquet {folder}/frames",
    "branches list t",
    "runs list",
    "runs show r",
    "runs usage",
    "stats",
    "feedback list",
    "feedback summary",
    "feedback compare stars",
    "drafts",
    "mcp --all-users",
    "check --fix --dry-run",
    "delete t --dry-run",
    "erasures",
    "erase --thread t --dry-run",
    "erase --user ada --dry-run",
    "erase --whole-tenant --dry-run",
    "erase-message t m --dry-run",
    "delete-inactive --older-than 0h --dry-run",
]
ROLLS_BACK = ["import {folder}/chat.json --dry-run"]
"""This one tries its writes in a transaction that it rolls back."""
READS_ANY_SCHEMA = ["schema", "sql SELECT\t1\tAS\ta"]
WRITES = [
    "archive t",
    "branches activate t 0",
    "feedback record r stars 1",
    "feedback remove f",
    "import {folder}/chat.json",
    "drafts --interrupt",
    "reencrypt",
    "check --fix --yes",
    "delete t --yes",
    "runs delete r --yes",
    "runs stop r",
    "runs resume r --approve c",
    "erase --thread t --yes",
    "erase-message t m --yes",
    "delete-inactive --older-than 0h --yes",
    "demo",
    "serve",
]
"""These do not migrate either. One who wants that types `migrate`, or `--migrate`."""
ELSEWHERE = {"migrate", "copy", "backup", "restore", "convert", "formats", "token add", "token list", "token revoke"}
"""`migrate` is what may change a schema, and `copy` makes that of its target; `backup` and `restore` make a file."""


def test_every_command_is_tried_here() -> None:
    known = {words for words, *_ in commands()}
    tried = {next(name for name in known if f"{words} ".startswith(f"{name} ")) for words in _ALL}
    assert tried | ELSEWHERE == known
    assert not tried & ELSEWHERE


_ALL = [*READS, *ROLLS_BACK, *READS_ANY_SCHEMA, *WRITES]


def run(words: str, url: str, folder: Path, *more: str) -> Outcome:
    return chatledger(*words.format(folder=folder).split(" "), *more, url=url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For the files that commands read and write, beside the folder of the database."""
    made = tmp_path / "files"
    made.mkdir()
    (made / "chat.json").write_text('[{"role": "user", "content": "Lima?"}]')
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A database of an older release."""
    url = request.getfixturevalue("pg_url") if request.param == "postgresql" else str(tmp_path / "old" / "old.db")
    (tmp_path / "old").mkdir()
    migrate(url, to=below(HEAD))
    return Database(request.param, url)


def state_of(database: Database) -> Any:
    """What a write would change: on SQLite the files with their bytes, but for the files that SQLite itself puts beside
    a database that it reads: -shm, and -wal with nothing in it.
    """
    if database.kind == "postgresql":
        return read_catalog(database), schema_status(database.url), all_rows(database)
    files = [path for path in Path(database.url).parent.iterdir() if path.is_file() and path.stat().st_size]
    return {path.name: path.read_bytes() for path in files if not path.name.endswith("-shm")}


def test_no_command_but_migrate_changes_the_schema_of_an_older_database(old: Database, folder: Path) -> None:
    before = state_of(old)
    command = f"chatledger migrate --url {old.url}"
    for words in [*READS, *ROLLS_BACK, *WRITES]:
        said = run(words, old.url, folder)
        assert (said.code, said.out) == (3, ""), (words, said)
        assert said.error == (
            f"chatledger: the database is at schema {below(HEAD)}, this release needs {HEAD}; run: {command}"
        ), words
    assert run("schema", old.url, folder).code == 1
    assert [run(words, old.url, folder).code for words in READS_ANY_SCHEMA] == [1, 0]
    assert state_of(old) == before
    assert chatledger(*command.split()[1:]).code == 0
    assert chatledger("threads", url=old.url).code == 0


@pytest.fixture
async def filled(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        await ledger.user("ada").threads.create("t")
        await ledger.runs.start("t", run_id="r", agent="a", model="m")
        first, *rest = turn()
        await ledger.messages.append("t", [first.model_copy(update={"message_id": "m"}), *rest], run_id="r")
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4, user_id="ada"))
        await ledger.threads.create("open")
        await ledger.messages.append("open", [user("?"), assistant(calls=[call("a")])], rules="lenient")
    return database


async def test_reading_writes_nothing(filled: Database, folder: Path) -> None:
    """On PostgreSQL the server refuses each write as well."""
    before = await asyncio.to_thread(state_of, filled)
    for words in ROLLS_BACK:
        assert (await asyncio.to_thread(run, words, filled.url, folder)).code == 0
    await refuse_writes(filled)
    for words in [*READS, *READS_ANY_SCHEMA]:
        said = await asyncio.to_thread(run, words, filled.url, folder)
        assert said.code in (0, 1), (words, said)
    assert await asyncio.to_thread(state_of, filled) == before


async def refuse_writes(database: Database) -> None:
    if database.kind == "postgresql":
        name = make_url(database.url).database
        await query(database, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')


async def test_a_write_would_be_seen(filled: Database, folder: Path) -> None:
    before = await asyncio.to_thread(state_of, filled)
    assert (await asyncio.to_thread(run, "archive t", filled.url, folder)).code == 0
    assert await asyncio.to_thread(state_of, filled) != before
    await refuse_writes(filled)
    refused = await asyncio.to_thread(run, "archive t --undo", filled.url, folder)
    assert refused.code == (3 if filled.kind == "postgresql" else 0)
