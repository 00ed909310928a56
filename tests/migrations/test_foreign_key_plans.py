"""The statements that PostgreSQL runs to check a foreign key, and the plans it keeps for them.

It plans such a check once for a connection, without looking at values. Tables that begin with the same columns in
several indexes can then be read by the wrong one: all of a thread for each row that is inserted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from chatledger.storage.schema.tables import metadata
from tests.conftest import Database
from tests.migrations.access import connected, run_script
from tests.postgres import Server

FOREIGN_KEYS = [key for table in metadata.sorted_tables for key in table.foreign_key_constraints]
THREADS = 50_000
DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Check:
    """The check of a foreign key: does `table` have a row with these columns?"""

    key: str
    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]

    def statement(self) -> str:
        condition = " AND ".join(f"x.{column} = ${place}" for place, column in enumerate(self.columns, 1))
        return f"SELECT 1 FROM ONLY {self.table} x WHERE {condition} FOR KEY SHARE OF x"


def insert_checks() -> list[Check]:
    """For each foreign key: is there the row that an inserted one points at?"""
    return [_check(str(key.name), [element.column for element in key.elements]) for key in FOREIGN_KEYS]


def delete_checks() -> list[Check]:
    """For each foreign key: are there rows that point at a deleted one?"""
    return [_check(str(key.name), list(key.columns)) for key in FOREIGN_KEYS]


def _check(name: str, columns: list[Any]) -> Check:
    types = tuple(column.type.compile(dialect=DIALECT).partition(" COLLATE")[0] for column in columns)
    return Check(name, str(columns[0].table), tuple(column.name for column in columns), types)


def wrong_plans(database: Database, checks: list[Check]) -> dict[str, str]:
    """The checks that read more than the rows they ask for, by foreign key, with the index that they are planned on."""
    return connected(database, lambda connection: _wrong_plans(connection, checks))


def _wrong_plans(connection: Connection, checks: list[Check]) -> dict[str, str]:
    connection.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
    scans = {check: scan(generic_plan(connection, check)) for check in checks}
    return {
        check.key: str(found.get("Index Name", found["Node Type"]))
        for check, found in scans.items()
        if not reads_only(check, found)
    }


def generic_plan(connection: Connection, check: Check) -> dict[str, Any]:
    connection.exec_driver_sql(f"PREPARE question ({', '.join(check.types)}) AS {check.statement()}")
    nothing = ", ".join(["NULL"] * len(check.columns))
    explained: Any = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) EXECUTE question ({nothing})").scalar_one()
    connection.exec_driver_sql("DEALLOCATE question")
    plan: dict[str, Any] = explained[0]["Plan"]
    return plan


def scan(plan: dict[str, Any]) -> dict[str, Any]:
    below: dict[str, Any] = plan["Plans"][0] if plan["Node Type"] == "LockRows" else plan
    return below


def reads_only(check: Check, found: dict[str, Any]) -> bool:
    """All columns asked for lead through the index, or all of the primary key do, which is one row at most."""
    if found["Node Type"] != "Index Scan":
        return False
    bound = {column for column in check.columns if f"({column} = $" in found["Index Cond"]}
    table = metadata.tables[check.table]
    return bound == set(check.columns) or (
        found["Index Name"] == table.primary_key.name and bound == {column.name for column in table.primary_key}
    )


SEED = f"""
INSERT INTO chatledger.threads (tenant_id, thread_id, active_branch, created_at, active_at)
  SELECT 'default', 't' || n, 0, now(), now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, created_at)
  SELECT 'default', 't' || n, 0, '[[0,1,null]]', 1, n, now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.runs (tenant_id, run_id, thread_id, status, started_at)
  SELECT 'default', 'r' || n, 't' || n, 'completed', now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.run_leases (tenant_id, thread_id, run_id, agent, attempt, worker_id)
  SELECT 'default', 't' || n, 'r' || n, 'a', 1, 'w' FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.run_decisions (tenant_id, thread_id, run_id, branch, seq, idx)
  SELECT 'default', 't' || n, 'r' || n, 0, 1, 0 FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.messages (tenant_id, thread_id, branch, seq, message_id, role, run_id, state, created_at)
  SELECT 'default', 't' || n, 0, 1, 'm' || n, 'assistant', 'r' || n, 'complete', now()
  FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.message_parts (tenant_id, thread_id, branch, seq, idx, channel, kind)
  SELECT 'default', 't' || n, 0, 1, 0, 'content', 'text' FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.tool_calls (tenant_id, thread_id, branch, seq, idx, name)
  SELECT 'default', 't' || n, 0, 1, 0, 'f' FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
  SELECT 'default', 't' || n, 0, 1, 0, 1, 0 FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.feedback (tenant_id, feedback_id, run_id, key, score, kwargs, thread_id, branch, seq, created_at)
  SELECT 'default', 'f' || n, 'r' || n, 'k', 1, '{{}}', 't' || n, 0, 1, now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.agents (tenant_id, thread_id, name, idx, definition, is_default)
  SELECT 'default', 't' || n, 'a', 0, '{{}}', true FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.outputs (tenant_id, thread_id, branch, seq, idx, nonce, mime_type, text, created_at)
  SELECT 'default', 't' || n, 0, 1, 0, 'n', 'text/plain', '', now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.revisions
  (tenant_id, thread_id, branch, seq, idx, kind, target_branch, target_seq, message_id, body, created_at)
  SELECT 'default', 't' || n, 0, 2, 0, 'revised', 0, 1, 'm' || n, '{{}}', now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.erasures (tenant_id, erasure_id, kind, subject, rows, scores, created_at)
  SELECT 'default', 'e' || n, 'thread', 's' || n, '{{}}', 1, now() FROM generate_series(1, {THREADS}) n;
INSERT INTO chatledger.kept_scores (tenant_id, erasure_id, idx, key, score, created_at)
  SELECT 'default', 'e' || n, 0, 'k', 1, now() FROM generate_series(1, {THREADS}) n;
"""


@pytest.fixture(scope="module")
def seeded_template(pg_server: Server, pg_template: str) -> Iterator[str]:
    """Most threads short, and nothing else for the planner to tell the indexes apart by."""
    with pg_server.database(template=pg_template) as url:
        run_script(Database("postgresql", url), SEED)
        run_script(Database("postgresql", url), "ANALYZE")
        yield url


@pytest.fixture
def never_analyzed(pg_server: Server, pg_template: str) -> Iterator[Database]:
    """A database of its own. One that other tests filled and emptied, autovacuum may have analyzed between them."""
    with pg_server.database(template=pg_template) as url:
        yield Database("postgresql", url)


@pytest.fixture
def seeded(pg_server: Server, seeded_template: str) -> Iterator[Database]:
    with pg_server.database(template=seeded_template) as url:
        yield Database("postgresql", url)


def test_an_insert_reads_one_row_for_a_check_in_a_database_never_analyzed(never_analyzed: Database) -> None:
    assert wrong_plans(never_analyzed, insert_checks()) == {}


def test_an_insert_reads_one_row_for_a_check_among_many_short_threads(seeded: Database) -> None:
    assert wrong_plans(seeded, insert_checks()) == {}


def test_a_delete_reads_only_what_points_at_the_row(seeded: Database) -> None:
    assert wrong_plans(seeded, delete_checks()) == {}


FULL_INDEXES = """
DROP INDEX chatledger.messages_message_id_key, chatledger.messages_run_id_idx;
CREATE UNIQUE INDEX messages_message_id_key ON chatledger.messages (tenant_id, thread_id, message_id);
CREATE INDEX messages_run_id_idx ON chatledger.messages (tenant_id, thread_id, run_id);
ANALYZE chatledger.messages;
"""


def test_indexes_that_are_not_partial_mislead_the_check(seeded: Database) -> None:
    """Why they are partial, and that the tests above can fail."""
    run_script(seeded, FULL_INDEXES)
    pointing = [key for key in FOREIGN_KEYS if key.referred_table.name == "messages"]
    assert wrong_plans(seeded, insert_checks()) == {str(key.name): "messages_run_id_idx" for key in pointing}
