"""Durable runs: who works on each, and what was decided about its calls.

The previous release is still running while this revision executes, and may be deployed again. It knows none of the new
columns and tables, all of which may stay NULL or empty. What it deletes takes the new rows along, by ON DELETE CASCADE.
It does not know that an attempt alone may write for its run, so start durable runs once every process runs the new
release.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

Text = sa.Text()
Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Small = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
RUN = ["tenant_id", "thread_id", "run_id"]
TABLES = ("run_leases", "run_decisions", "workers")


def upgrade(schema: str | None) -> None:
    for column in _columns():
        op.add_column("runs", column, schema=schema, if_not_exists=schema is not None)
    op.create_table(
        "run_leases",
        *_run(),
        sa.Column("agent", Key, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker_id", Key, nullable=False),
        sa.Column("paused_at", Moment),
        sa.PrimaryKeyConstraint(*RUN, name="run_leases_pkey"),
        _of_run("run_leases", schema),
        sa.CheckConstraint("attempt >= 0", name="run_leases_attempt_check"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )
    _index("run_leases_worker_idx", "run_leases", ["worker_id"], "paused_at IS NULL", schema)
    op.create_table(
        "run_decisions",
        *_run(),
        sa.Column("branch", sa.Integer(), nullable=False),
        sa.Column("seq", Position, nullable=False),
        sa.Column("idx", Small, nullable=False),
        sa.Column("revision", sa.Integer()),
        sa.Column("decision", Text),
        sa.Column("reason", Text),
        sa.Column("pending_reason", Text),
        sa.Column("author", Key),
        sa.Column("decided_at", Moment),
        sa.Column("begun_at", Moment),
        sa.PrimaryKeyConstraint(*RUN, "branch", "seq", "idx", name="run_decisions_pkey"),
        _of_run("run_decisions", schema),
        sa.CheckConstraint("idx >= 0", name="run_decisions_idx_check"),
        sa.CheckConstraint("decision IN ('approved', 'refused', 'result')", name="run_decisions_decision_check"),
        schema=schema,
    )
    _index("run_decisions_author_idx", "run_decisions", ["tenant_id", "author"], "author IS NOT NULL", schema)
    op.create_table(
        "workers",
        sa.Column("worker_id", Key, nullable=False),
        sa.Column("lease_until", Moment, nullable=False),
        sa.Column("database_id", Text),
        sa.PrimaryKeyConstraint("worker_id", name="workers_pkey"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )


def downgrade(schema: str | None) -> None:
    for table in TABLES:
        op.drop_table(table, schema=schema)
    for column in _columns():
        op.drop_column("runs", column.name, schema=schema)


def _columns() -> list[sa.Column[object]]:
    return [
        sa.Column("question_id", Key),
        sa.Column("branch", sa.Integer()),
        sa.Column("tools_of", Key),
        sa.Column("call_secret", Text),
        sa.Column("attempts", sa.Integer()),
    ]


def _run() -> list[sa.Column[object]]:
    return [sa.Column(name, Key, nullable=False) for name in RUN]


def _of_run(table: str, schema: str | None) -> sa.ForeignKeyConstraint:
    prefix = f"{schema}." if schema else ""
    name = f"{table}_tenant_id_thread_id_run_id_fkey"
    return sa.ForeignKeyConstraint(RUN, [f"{prefix}runs.{column}" for column in RUN], name=name, ondelete="CASCADE")


def _index(name: str, table: str, columns: list[str], where: str, schema: str | None) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, schema=schema, postgresql_where=condition, sqlite_where=condition)
