"""Whose answer each lease is, its place among those of its user, and the database where it began.

The previous release is still running while this revision executes, and may be deployed again. It knows none of the new
columns, all of which may stay NULL: what it starts counts for no user, and goes on in a restored database. It neither
reads nor writes `workers.database_id`, which goes.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
LEASES = "run_leases"
BY_WORKER, BY_PLACE, BY_USER = "run_leases_worker_idx", "run_leases_place_idx", "run_leases_user_idx"
UNPAUSED = sa.text("paused_at IS NULL")


def upgrade(schema: str | None) -> None:
    for column in _columns():
        op.add_column(LEASES, column, schema=schema, if_not_exists=schema is not None)
    _fill(schema)
    _index(BY_PLACE, ["worker_id", "place"], schema, UNPAUSED)
    _index(BY_USER, ["tenant_id", "user_id", "thread_id"], schema)
    _drop_index(schema)
    op.drop_column("workers", "database_id", schema=schema, if_exists=schema is not None)


def downgrade(schema: str | None) -> None:
    op.add_column("workers", sa.Column("database_id", sa.Text()), schema=schema)
    op.create_index(BY_WORKER, LEASES, ["worker_id"], schema=schema, postgresql_where=UNPAUSED, sqlite_where=UNPAUSED)
    for name in (BY_USER, BY_PLACE):
        op.drop_index(name, LEASES, schema=schema)
    for column in _columns():
        op.drop_column(LEASES, column.name, schema=schema)


def _columns() -> list[sa.Column[object]]:
    return [sa.Column("user_id", Key), sa.Column("place", sa.Integer()), sa.Column("database_id", sa.Text())]


def _fill(schema: str | None) -> None:
    """The open answers of before all have the same place."""
    key = ("tenant_id", "thread_id")
    own = [sa.column(name, Key) for name in (*key, "user_id")]
    leases = sa.table(LEASES, *own, sa.column("place", sa.Integer()), schema=schema)
    threads = sa.table("threads", *(sa.column(name, Key) for name in (*key, "user_id")), schema=schema)
    of_thread = sa.and_(*(threads.c[name] == leases.c[name] for name in key))
    user = sa.select(threads.c.user_id).where(of_thread).correlate(leases).scalar_subquery()
    op.execute(leases.update().values(user_id=user, place=0))


def _index(name: str, columns: list[str], schema: str | None, where: sa.TextClause | None = None) -> None:
    if op.get_context().dialect.name == "sqlite" or _is_partitioned(schema):
        op.create_index(name, LEASES, columns, schema=schema, postgresql_where=where, sqlite_where=where)
        return
    with op.get_context().autocommit_block():
        # A migrator that was killed may have left an invalid index.
        op.drop_index(name, schema=schema, if_exists=True, postgresql_concurrently=True)
        op.create_index(
            name,
            LEASES,
            columns,
            schema=schema,
            if_not_exists=True,
            postgresql_concurrently=True,
            postgresql_where=where,
        )


def _drop_index(schema: str | None) -> None:
    if op.get_context().dialect.name == "sqlite" or _is_partitioned(schema):
        op.drop_index(BY_WORKER, LEASES, schema=schema)
        return
    with op.get_context().autocommit_block():
        op.drop_index(BY_WORKER, schema=schema, if_exists=True, postgresql_concurrently=True)


def _is_partitioned(schema: str | None) -> bool:
    """PostgreSQL has no CONCURRENTLY for partitioned tables."""
    if op.get_context().as_sql:
        return False
    kind = sa.text("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(:name)")
    return op.get_bind().execute(kind, {"name": f'"{schema}".{LEASES}'}).scalar() == "p"
