"""A migration to an older revision counts what that schema has no place for, and discards it only if it is told to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from chatledger import Feedback, Ledger, PostgreSQL, StorageError
from chatledger.admin import migrate, offline_sql, schema_status
from chatledger.storage.upgrade.discard import ADDED
from tests.conftest import KEYS, Database
from tests.conversations import turn, user
from tests.migrations.access import all_rows, connected, fetch, schema_of
from tests.migrations.partitions import create_partitioned_schema
from tests.migrations.released.kept import restore
from tests.migrations.revisions import HEAD, below, revisions
from tests.storage.schema.test_row_security import owned

__all__ = ["owned"]  # a fixture

EXPECTED = (
    f"revision 0004 has no place for what this database has at revision {HEAD}: kv: 3 rows; tenants: 2 rows; "
    "threads.kind: 2 values; threads.archived_at: 2 values; threads.revision: 2 values; feedback.message_id: 2 values; "
    "feedback.user_id: 2 values"
)


async def fill(ledger: Ledger) -> None:
    """Values of most of what 0005 adds, in two tenants, and no removed message."""
    for tenant in (ledger, ledger.tenant("acme")):
        await tenant.threads.create("t", kind="sky")
        await tenant.threads.update("t", title="Changed")
        await tenant.threads.update("t", archived=True)
        await tenant.messages.append("t", turn("m"), run_id="run-7")
        score = Feedback(run_id="run-7", key="stars", score=4, message_id="m4", user_id="ada")
        await tenant.feedback.record(score)
        await tenant.kv.put(("tenant",), "a", 1)
    await ledger.kv.put(("thread", "t"), "b", "x")


async def filled(url: str, **options: Any) -> None:
    async with Ledger.open(url, **options, encryption=KEYS) as ledger:
        await fill(ledger)


def refusal(url: str, **options: Any) -> str:
    """The error of a migration that changes nothing: neither the tables nor, for a file, what is beside it."""
    with pytest.raises(StorageError) as caught:
        migrate(url, **options)
    assert not caught.value.retryable
    assert schema_status(url).found == HEAD
    return str(caught.value)


async def test_what_the_older_schema_lacks_is_counted_and_nothing_changed(database: Database) -> None:
    await filled(database.url)
    before = await asyncio.to_thread(all_rows, database)
    error = await asyncio.to_thread(refusal, database.url, to="0004")
    assert error.startswith(EXPECTED)
    assert "discard=True" in error
    assert "--yes" in error
    assert await asyncio.to_thread(all_rows, database) == before
    assert list(Path(database.url).parent.glob("*.bak")) == []


async def test_it_is_discarded_if_the_caller_says_so(database: Database) -> None:
    await filled(database.url)
    status = await asyncio.to_thread(migrate, database.url, to="0004", discard=True)
    assert status.found == "0004"


def test_an_empty_database_goes_down_without_a_question(database: Database) -> None:
    assert migrate(database.url, to="0001").found == "0001"


async def test_going_up_counts_nothing(empty: Database) -> None:
    await asyncio.to_thread(restore, empty, "0004")
    assert (await asyncio.to_thread(migrate, empty.url)).found == HEAD


async def test_tombstones_are_asked_for_by_themselves(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.user("ada").threads.create("gone")
        await ledger.erasures.erase(("user", "ada"))
    error = await asyncio.to_thread(refusal, database.url, to="0002", discard=True)
    assert "erasures: 2 rows" in error  # of the user and of the thread
    assert "discard_tombstones=True" in error
    assert "--discard-tombstones" in error
    assert (await asyncio.to_thread(migrate, database.url, to="0002", discard_tombstones=True)).found == "0002"


async def test_kept_scores_are_no_tombstones(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        await ledger.threads.create("gone")
        await ledger.runs.start("gone", run_id="run-8")
        await ledger.feedback.record(Feedback(run_id="run-8", key="stars", score=2))
        await ledger.erasures.erase(("thread", "gone"), keep_scores=True)
    error = await asyncio.to_thread(refusal, database.url, to="0002", discard_tombstones=True)
    assert "kept_scores: 1 row" in error


@pytest.mark.parametrize("to", ["base", "0004"])
async def test_removed_messages_are_refused_whatever_is_given(database: Database, to: str) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn("m"))
        await ledger.messages.pop("t")
        await ledger.threads.create("other")
        await ledger.messages.append("other", [user("Oslo?", message_id="o1")])
        await ledger.messages.revise("other", "o1", user("Tokyo?"))
    error = await asyncio.to_thread(refusal, database.url, to=to, discard=True, discard_tombstones=True)
    assert error.startswith("messages were removed or revised on 2 branches")


async def test_base_discards_every_table(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn("m"))
    error = await asyncio.to_thread(refusal, database.url, to="base")
    assert "threads: 1 row; branches: 1 row; messages: 5 rows" in error
    assert (await asyncio.to_thread(migrate, database.url, to="base", discard=True)).found is None


async def test_every_tenant_is_counted_under_row_level_security(owned: str) -> None:
    await asyncio.to_thread(migrate, owned, rls=True)
    await filled(owned)
    assert (await asyncio.to_thread(refusal, owned, to="0004")).startswith(EXPECTED)


async def test_a_partitioned_database_is_counted(empty_postgresql: Database) -> None:
    make = lambda connection: create_partitioned_schema(connection, partitions=4)  # noqa: E731
    await asyncio.to_thread(connected, empty_postgresql, make)
    await filled(empty_postgresql.url)
    assert (await asyncio.to_thread(refusal, empty_postgresql.url, to="0004")).startswith(EXPECTED)


async def test_a_schema_of_another_name_is_counted(empty_postgresql: Database) -> None:
    await asyncio.to_thread(migrate, empty_postgresql.url, schema="Other-1")
    await filled(empty_postgresql.url, postgresql=PostgreSQL(schema="Other-1"))
    with pytest.raises(StorageError) as caught:
        await asyncio.to_thread(migrate, empty_postgresql.url, schema="Other-1", to="0004")
    assert str(caught.value).startswith(EXPECTED)


async def test_the_printed_statements_begin_with_queries_that_count_the_same(database: Database) -> None:
    await filled(database.url)
    printed = offline_sql(database.url, to="0004")
    queries = [line.removeprefix("-- ") for line in printed.splitlines() if line.startswith("-- SELECT count")]
    counted = {query: (await asyncio.to_thread(fetch, database, query.rstrip(";")))[0][0] for query in queries}
    prefix = '"chatledger".' if database.kind == "postgresql" else ""
    assert counted[f"SELECT count(*) FROM {prefix}kv;"] == 3
    assert counted[f"SELECT count(archived_at) FROM {prefix}threads;"] == 2
    assert counted[f"SELECT count(*) FROM {prefix}branches WHERE absent > 0;"] == 0
    added = [name for revision in ("0005", "0006", "0008") for name in ADDED[revision]]
    assert len(queries) == len(added) - 1  # the secret of digests goes with its row


def test_the_statements_up_to_the_newest_schema_have_no_such_comment(database: Database) -> None:
    assert "SELECT count" not in offline_sql(database.url)


@pytest.mark.parametrize("revision", revisions())
def test_the_list_names_all_that_a_revision_adds(revision: str, empty: Database) -> None:
    if below(revision) != "base":
        migrate(empty.url, to=below(revision))
    before = _names(empty)
    migrate(empty.url, to=revision)
    new = _names(empty) - before - {"chatledger_version"}
    tables = {name for name in new if "." not in name}
    added = {name for name in new if name.partition(".")[0] not in tables} - {"chatledger_version.version_num"}
    assert set(ADDED.get(revision, ())) == tables | added


def _names(database: Database) -> set[str]:
    schema = schema_of(database)

    def read(connection: Any) -> set[str]:
        found = inspect(connection)
        tables = found.get_table_names(schema=schema)
        columns = {f"{table}.{one['name']}" for table in tables for one in found.get_columns(table, schema=schema)}
        return {*tables, *columns}

    return connected(database, read)
