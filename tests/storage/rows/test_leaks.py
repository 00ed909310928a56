"""Searches every place that could hold words of a ledger with keys: its files, the write-ahead log, both logs.

Each search is shown to find what is said to a ledger without keys.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from chatledger import ChatLedgerError, ChatMessage, Encryption, Ledger
from chatledger.admin import migrate
from tests.conftest import Database
from tests.conversations import call, user
from tests.postgres import Server, own_server
from tests.storage.words import RING, Said, read_everything, say_everything


@pytest.fixture(scope="module")
def logging_server() -> Iterator[Server]:
    """A server that logs every statement with its parameters, and every error."""
    with own_server(settings=("log_statement=all", "log_min_messages=debug1")) as started:
        yield started


@pytest.fixture
def logged_url(logging_server: Server) -> Iterator[str]:
    with logging_server.database() as url:
        migrate(url)
        yield url


async def say_and_fail(ledger: Ledger, said: Said) -> list[str]:
    """Store words of all kinds, and make calls that the database or the rules refuse. Returns the errors' texts."""
    await say_everything(ledger, said)
    errors: list[str] = []
    refused: list[list[ChatMessage]] = [
        [user(said("conflict"), message_id="t0")],
        [ChatMessage(role="tool", tool_call_id="nothing", content=said("orphan"))],
        [user(said("foreign"), run_id="run u")],
        [ChatMessage(role="assistant", tool_calls=[call("c", arguments=said("argument"))]), user(said("unanswered"))],
    ]
    for messages in refused:
        try:
            await ledger.messages.append("t", messages)
        except ChatLedgerError as error:
            errors += [str(error), repr(error.__cause__)]
    assert len(errors) == 2 * len(refused)
    with suppress(ChatLedgerError):
        await ledger.threads.create("t", title=said("twice"))
    await read_everything(ledger)
    return errors


def found(words: Iterable[str], where: bytes) -> list[str]:
    return [word for word in words if word.encode() in where]


def files(*paths: Path) -> bytes:
    found = [one for path in paths for one in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return b"".join(one.read_bytes() for one in found if one.is_file())


@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without"])
async def test_no_word_is_left_in_a_file_or_beside_it(
    keyed: bool, sqlite_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    _log_all(caplog)
    said = Said()
    folder = Path(sqlite_database.url).parent
    async with sqlite_database.open(encryption=RING if keyed else None) as ledger:
        errors = await say_and_fail(ledger, said)
        while_open = files(folder)
        assert (folder / "ledger.db-wal").stat().st_size > 0
    closed = files(folder)
    leaked = found(said.words, while_open + closed)
    if keyed:
        assert leaked == []
        assert found(said.words, "".join([caplog.text, *errors]).encode()) == []
    else:
        assert len(leaked) > 50


@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without"])
async def test_no_word_is_left_on_a_server_in_its_wal_or_its_log(
    keyed: bool, logged_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    _log_all(caplog)
    said = Said()
    async with Ledger.open(logged_url, encryption=RING if keyed else None) as ledger:
        errors = await say_and_fail(ledger, said)
    folder, own = await _checkpoint(logged_url)
    leaked = {
        "tables": found(said.words, files(own)),
        "wal": found(said.words, files(folder / "pg_wal")),
        "log": found(said.words, files(folder.parent / "server.log")),
    }
    if keyed:
        assert leaked == {"tables": [], "wal": [], "log": []}
        assert found(said.words, "".join([caplog.text, *errors]).encode()) == []
    else:
        assert all(len(words) > 50 for words in leaked.values())


def _log_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "asyncpg", "aiosqlite", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)


async def _checkpoint(url: str) -> tuple[Path, Path]:
    """The server's folder and that of the database, after a checkpoint has written all pages."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CHECKPOINT")
        oid: Any = await connection.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
        folder = Path(await connection.fetchval("SHOW data_directory"))
    finally:
        await connection.close()
    return folder, folder / "base" / str(oid)


async def test_no_plain_text_is_left_in_a_file_after_reencrypt_and_vacuum(
    sqlite_database: Database,
) -> None:
    said, path = Said(), Path(sqlite_database.url)
    async with sqlite_database.open(encryption=None) as ledger:
        await say_everything(ledger, said)
    async with sqlite_database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        await ledger.reencrypt()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert found(said.words, files(path.parent)) == []
