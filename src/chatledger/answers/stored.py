"""An answer as it is stored: its run, its question, and who works on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, func, literal, literal_column, select, update

from chatledger.errors import DamagedCell, RunLost
from chatledger.ids import new_stamp
from chatledger.models import Run
from chatledger.storage.append.request import Fence
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant, damaged_cell
from chatledger.storage.rows.owned import owned, owned_each
from chatledger.storage.rows.runs import to_run
from chatledger.storage.schema.columns import Moment
from chatledger.storage.schema.tables import branches, run_leases, runs, threads
from chatledger.storage.schema.text import encode_key

NOBODY = ""
"""The worker of an answer that no process works on."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """`attempt` and `worker_id` are those of its lease; an answer that has ended has none. `tools_of` is the message
    whose tools an attempt began last, `secret` is what the keys of its calls are made of, and `attempts` counts the
    attempts in a row that stored nothing.
    """

    run: Run
    question_id: str
    branch: int
    secret: str
    tools_of: str | None = None
    attempts: int = 0
    user_id: str | None = None
    attempt: int | None = None
    worker_id: str = NOBODY
    paused_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.attempt is not None

    @property
    def names(self) -> tuple[str, str]:
        """Its thread and its run."""
        return self.run.thread_id, self.run.run_id

    @property
    def fence(self) -> Fence:
        worker = encode_key(self.worker_id, "worker_id") if self.worker_id else NOBODY
        run = encode_key(self.run.run_id, "run_id")
        return Fence(run, self.attempt or 0, worker, paused=self.paused_at is not None)

    def taken_by(self, worker_id: str, attempt: int) -> StoredAnswer:
        return replace(self, worker_id=worker_id, attempt=attempt, paused_at=None)


_OWN = ("question_id", "branch", "call_secret", "tools_of", "attempts")
_LEASE = ("attempt", "worker_id", "paused_at")


def find_answer(sql: ReadSql, tenant: Tenant, run_id: str) -> StoredAnswer | None:
    """None if there is no such run, or if it answers no question."""
    answers = _find(sql, tenant, and_(owned_each(runs, tenant), runs.c.run_id == run_id))
    return answers[0] if answers else None


def open_answers(sql: ReadSql, tenant: Tenant, thread_id: str) -> Sequence[StoredAnswer]:
    """Reads the answers of the thread that have not ended."""
    own = and_(owned(runs, tenant), runs.c.thread_id == thread_id, run_leases.c.attempt.is_not(None))
    return _find(sql, tenant, own)


def _find(sql: ReadSql, tenant: Tenant, wanted: ColumnElement[bool]) -> list[StoredAnswer]:
    of_run = and_(*(run_leases.c[name] == runs.c[name] for name in ("tenant_id", "thread_id", "run_id")))
    of_thread = and_(*(threads.c[name] == runs.c[name] for name in ("tenant_id", "thread_id")))
    lease = [run_leases.c[name].label(f"lease_{name}") for name in _LEASE]
    statement = (
        select(runs, threads.c.user_id, *lease)
        .join(threads, of_thread)
        .outerjoin(run_leases, of_run)
        .where(wanted, runs.c.question_id.is_not(None))
    )
    return [_to_answer(tenant, row) for row in sql.execute(statement).mappings()]


def _to_answer(tenant: Tenant, row: Any) -> StoredAnswer:
    """Raises DamagedCell and EncryptionError."""
    question_id, branch, secret, tools_of, attempts = (row[name] for name in _OWN)
    if type(branch) is not int or type(secret) is not str or type(attempts) is not int:
        raise _damaged(row)
    return StoredAnswer(
        run=to_run(tenant, {name: row[name] for name in runs.c.keys()}),  # noqa: SIM118 - a row has further columns
        question_id=question_id,
        branch=branch,
        secret=secret,
        tools_of=tools_of,
        attempts=attempts,
        user_id=row["user_id"],
        attempt=row["lease_attempt"],
        worker_id=row["lease_worker_id"] or NOBODY,
        paused_at=row["lease_paused_at"],
    )


def _damaged(row: Any) -> DamagedCell:
    column = "branch" if type(row["branch"]) is not int else "attempts"
    return damaged_cell(runs, column, row)


# --- Locks ------------------------------------------------------------------------------------------------------------


def lease_of(tenant: Tenant, answer: StoredAnswer) -> ColumnElement[bool]:
    """The condition for the row of the lease, as this answer has it: nobody else took it up, paused or ended it."""
    return and_(
        run_leases.c.tenant_id == tenant.name,
        run_leases.c.thread_id == answer.run.thread_id,
        run_leases.c.run_id == answer.run.run_id,
        run_leases.c.attempt == answer.attempt,
        run_leases.c.worker_id == answer.worker_id,
        run_leases.c.paused_at.is_(None) if answer.paused_at is None else run_leases.c.paused_at.is_not(None),
    )


def hold_lease(sql: WriteSql, tenant: Tenant, answer: StoredAnswer) -> None:
    """Nobody takes the answer up, pauses or ends it before the transaction ends. Raises RunLost."""
    held = select(run_leases.c.attempt).where(lease_of(tenant, answer)).with_for_update()
    if sql.execute(held).first() is None:
        raise RunLost(answer.run.run_id)


def hold_branch(sql: WriteSql, tenant: Tenant, answer: StoredAnswer) -> int:
    """Give the answer's branch a new stamp, and return it: what was judged before is not written. Locks go in the order
    branch, lease, run.
    """
    stamp = new_stamp()
    own = and_(
        branches.c.tenant_id == tenant.name,
        branches.c.thread_id == answer.run.thread_id,
        branches.c.branch == answer.branch,
    )
    sql.execute(update(branches).where(own).values(stamp=stamp))
    return stamp


def run_of(tenant: Tenant, answer: StoredAnswer) -> ColumnElement[bool]:
    return and_(runs.c.tenant_id == tenant.name, runs.c.run_id == answer.run.run_id)


def clock(sql: ReadSql) -> ColumnElement[datetime]:
    """The time of the database, which is the clock of all leases. A SQLite file is of one machine.

    Each statement has its own, so one that follows a wait for a lock does not count from before. Citus refuses
    `clock_timestamp()` in what writes a distributed table.
    """
    if sql.dialect == "postgresql":
        return func.statement_timestamp(type_=Moment())
    return literal(datetime.now(UTC), Moment())


def database_id(sql: ReadSql) -> ColumnElement[str | None]:
    """Which database this is: a file has an id, and PostgreSQL numbers its clusters and their databases. None on one
    that is distributed, each of whose servers has another number.
    """
    if sql.dialect == "sqlite":
        return literal_column("(SELECT database_id FROM chatledger_version)", Text)
    return literal(None, Text) if sql.distributed else literal_column(_CLUSTER, Text)


_CLUSTER = (
    "(SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " FROM pg_control_system())"
)


def serve(sql: ReadSql) -> None:
    """Let this transaction read the leases of all tenants, and nothing else of them, under row-level security."""
    if sql.dialect == "postgresql":
        sql.fetch("SELECT set_config('chatledger.serving', 'on', true)", {})
