"""A read changes nothing: what writes is refused before it is sent, on both databases and in every kind of read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import insert, literal_column, select, text, update

from chatledger import Ledger
from chatledger.repositories import scope_of
from chatledger.storage.drivers.sql import ReadSql, WriteSql, refuse_write, refuse_writing_text
from chatledger.storage.schema.tables import threads
from tests.conftest import Database
from tests.storage.raw import count_rows, query

UPDATE = "UPDATE {schema}threads SET title = 'changed'"
HIDDEN = f"WITH changed AS ({UPDATE} RETURNING thread_id) SELECT thread_id FROM changed"
SENT: dict[str, Callable[[ReadSql], object]] = {
    "a text": lambda sql: sql.fetch(UPDATE, {}),
    "rows of a text": lambda sql: list(sql.each(UPDATE, {})),
    "a text with a CTE": lambda sql: sql.fetch(HIDDEN, {}),
    "a statement": lambda sql: sql.execute(update(threads).values(title="changed")),
    "a statement of text": lambda sql: sql.execute(text("DELETE FROM threads")),
    "a statement with a CTE": lambda sql: sql.execute(
        select(insert(threads).values(tenant_id="x", thread_id="x").returning(threads.c.thread_id).cte().c.thread_id)
    ),
}
Read = Callable[[Ledger, Callable[[ReadSql], Any]], Awaitable[Any]]


async def plain(ledger: Ledger, work: Callable[[ReadSql], Any]) -> Any:
    return await scope_of(ledger).read(work)


async def snapshot(ledger: Ledger, work: Callable[[ReadSql], Any]) -> Any:
    return await scope_of(ledger).read(work, snapshot=True)


async def in_transaction(ledger: Ledger, work: Callable[[ReadSql], Any]) -> Any:
    async with ledger.begin() as tx:
        return await scope_of(tx).read(work)


@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("read", [plain, snapshot, in_transaction], ids=lambda read: read.__name__)
async def test_no_read_changes_a_row(ledger: Ledger, database: Database, read: Read, sent: str) -> None:
    await ledger.threads.create("t", title="as it was")
    before, stored = await count_rows(database), await query(database, "SELECT title FROM threads")
    with pytest.raises(ValueError, match="a read may not change the database"):
        await read(ledger, SENT[sent])
    assert await query(database, "SELECT title FROM threads") == stored
    assert await count_rows(database) == before
    titles = "SELECT title FROM {schema}threads WHERE tenant_id = :tenant"
    assert await read(ledger, lambda sql: [tuple(row) for row in sql.fetch(titles, {"tenant": "default"})]) == stored
    assert (await ledger.threads.get("t")).title == "as it was"


async def test_a_read_in_a_transaction_that_writes_is_still_a_read(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    async with ledger.begin() as tx:
        assert isinstance(await scope_of(tx).read(lambda sql: sql), ReadSql)
        assert not isinstance(await scope_of(tx).read(lambda sql: sql), WriteSql)
        assert isinstance(await scope_of(tx).write(lambda sql: sql), WriteSql)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "  (SELECT 1) UNION (SELECT 2)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
        "SELECT 'DELETE FROM x (UPDATE y' AS \"(INSERT INTO z\" -- (DELETE FROM t",
        "SELECT update_count, replace(a, 'b', 'c') FROM t WHERE (deleted_at IS NULL)",
    ],
)
def test_what_reads_is_let_through(statement: str) -> None:
    refuse_writing_text(statement)
    refuse_write(text(statement))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t values (1)",
        "DELETE FROM t",
        "PRAGMA user_version = 3",
        "DROP TABLE t",
        "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
        "WITH a AS (SELECT 1) UPDATE t SET x = 1",
        "WITH a AS MATERIALIZED (\n  INSERT INTO t VALUES (1) RETURNING *) SELECT 1",
        "WITH a AS (SELECT 1), b AS (MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE) SELECT 1",
        "SELECT 1; DELETE FROM t",
    ],
)
def test_what_writes_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="a read may not change"):
        refuse_writing_text(statement)


def test_a_statement_is_judged_once_by_its_text() -> None:
    refuse_writing_text.cache_clear()
    for _ in range(3):
        refuse_writing_text("SELECT 1")
    assert (refuse_writing_text.cache_info().misses, refuse_writing_text.cache_info().hits) == (1, 2)
    refuse_write(select(literal_column("1")))
