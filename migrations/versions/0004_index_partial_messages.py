"""An index of the few branches that end with a partial message.

The previous release is still running while this revision executes, and may be deployed again. It neither uses the index
nor is hindered by it. An append does not change `partial_seq`, so its update of the branch's row stays HOT.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAME = "branches_partial_idx"
COLUMNS = ["tenant_id", "thread_id", "branch"]
PREDICATE = sa.text("partial_seq IS NOT NULL")


def upgrade(schema: str | None) -> None:
    if op.get_context().dialect.name == "sqlite":
        op.create_index(NAME, "branches", COLUMNS, sqlite_where=PREDICATE)
        return
    if _is_partitioned(schema):  # PostgreSQL has no CONCURRENTLY for partitioned tables
        op.create_index(NAME, "branches", COLUMNS, schema=schema, postgresql_where=PREDICATE)
        return
    with op.get_context().autocommit_block():
        # A migrator that was killed may have left an invalid index.
        op.drop_index(NAME, schema=schema, if_exists=True, postgresql_concurrently=True)
        op.create_index(
            NAME,
            "branches",
            COLUMNS,
            schema=schema,
            if_not_exists=True,
            postgresql_where=PREDICATE,
            postgresql_concurrently=True,
        )


def downgrade(schema: str | None) -> None:
    op.drop_index(NAME, "branches", schema=schema)


def _is_partitioned(schema: str | None) -> bool:
    if op.get_context().as_sql:
        return False
    kind = sa.text("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(:name)")
    return op.get_bind().execute(kind, {"name": f'"{schema}".branches'}).scalar() == "p"
