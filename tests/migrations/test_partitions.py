"""The ledger on hash-partitioned PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.admin import migrate
from chatledger.errors import RunConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.tables import SCHEMA, metadata
from chatledger.storage.upgrade.versions import VERSION_TABLE
from tests.conftest import Database
from tests.conversations import texts, turn, user
from tests.migrations.access import connected, fetch
from tests.migrations.catalog import read_catalog
from tests.migrations.partitions import create_partitioned_schema, without_partitions

TENANTS = [f"tenant {number}" for number in range(8)]


@pytest.fixture
def partitioned(empty_postgresql: Database) -> Database:
    connected(empty_postgresql, lambda connection: create_partitioned_schema(connection, partitions=4))
    return empty_postgresql


async def test_a_partitioned_ledger_stores_and_reads(partitioned: Database) -> None:
    async with Ledger.open(partitioned.url) as shared:
        for tenant in TENANTS:
            await use(shared.tenant(tenant))
    used = await asyncio.to_thread(fetch, partitioned, "SELECT count(DISTINCT tableoid) FROM chatledger.messages")
    assert used[0][0] > 1


async def use(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    stored = await ledger.messages.append("t", turn("m"), run_id="run-7")
    assert (await ledger.messages.append("t", turn("m"), run_id="run-7")).replayed
    assert (await ledger.messages.history("t")).messages == stored.messages
    await ledger.feedback.record(Feedback(run_id="run-7", key="stars", score=4, message_id="m4"))
    assert [summary.mean for summary in await ledger.feedback.summary()] == [4]
    await ledger.threads.create("other")
    with pytest.raises(RunConflict):
        await ledger.messages.append("other", [user("x")], run_id="run-7")
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [ChatMessage(role="assistant", content="Or so.")])
    assert texts(await ledger.messages.history("t"))[1:] == ["Or so."]
    async with ledger.begin() as tx:
        await tx.messages.append("other", turn())
    assert [thread.thread_id for thread in await ledger.threads.list(order="created")] == ["other", "t"]


async def test_deleting_a_thread_leaves_no_row(partitioned: Database) -> None:
    async with Ledger.open(partitioned.url) as ledger:
        await use(ledger)
        deleted = await ledger.threads.delete("t")
        assert deleted.rows == {
            "feedback": 1, "tool_results": 2, "tool_calls": 2, "message_parts": 0,
            "messages": 6, "runs": 1, "branches": 2, "threads": 1, "outputs": 0, "agents": 0, "revisions": 0, "kv": 0,
            "run_leases": 0, "run_decisions": 0,
        }  # fmt: skip


def test_storage_parameters_are_on_the_partitions(partitioned: Database) -> None:
    found = fetch(
        partitioned,
        "SELECT relname, reloptions::text FROM pg_class WHERE relname LIKE 'branches%' AND relkind IN ('r', 'p')",
    )
    parts = {(f"branches_tenants_{number}", "{fillfactor=70}") for number in range(4)}
    assert set(found) == {("branches", None)} | parts


def test_every_index_is_on_every_partition(partitioned: Database, pg_database: Database) -> None:
    plain = {(table, name) for table, name, *_ in read_catalog(pg_database)["indexes"]}
    catalog = read_catalog(partitioned)
    assert {(table, name) for table, name, *_ in catalog["indexes"] if "_tenants_" not in table} == plain
    assert all(valid for _, _, valid, *_ in catalog["indexes"])
    by_partition = [table.rpartition("_tenants_")[0] for table, *_ in catalog["indexes"] if "_tenants_" in table]
    tables = [table for table, name in plain if name not in (f"{VERSION_TABLE}_pkc", "workers_pkey")]
    assert sorted(by_partition) == sorted(tables * 4)


def test_indexes_are_dropped_and_created_again(partitioned: Database) -> None:
    """The indexes of tables that were there before. No revision partitions a table that it creates."""
    before = _indexes_of(partitioned, "branches", "threads", "messages")
    migrate(partitioned.url, to="0003")
    # Three, each of them on the table and on its four partitions; one more leads with another column.
    assert len(_indexes_of(partitioned, "branches", "threads", "messages")) == len(before) - 3 * 5
    migrate(partitioned.url)
    assert _indexes_of(partitioned, "branches", "threads", "messages") == before


def _indexes_of(database: Database, *tables: str) -> list[tuple[str, str]]:
    """Table and columns of each index, also of partitions."""
    found = [(row[0], row[-1].partition(" USING ")[2]) for row in read_catalog(database)["indexes"]]
    return sorted((table, columns) for table, columns in found if table.startswith(tables))


def test_nothing_is_pending_beside_the_partitions(partitioned: Database) -> None:
    assert connected(partitioned, pending) == []


def pending(connection: Connection) -> list[object]:
    options = {
        "compare_type": True,
        "include_schemas": True,
        "include_name": lambda name, type_, _parents: type_ != "schema" or name == SCHEMA,
        "include_object": without_partitions,
        "version_table": VERSION_TABLE,
        "version_table_schema": SCHEMA,
    }
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))
