"""The highest version of the deleted values of a tenant, and a random id of the database.

The previous release is still running while this revision executes, and may be deployed again. It deletes values
without raising that version, and puts them without reading it: so until its last process has ended, a version can come
back after a deletion if a clock steps back, as before.
"""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import context, op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

VERSION_TABLE = "chatledger_version"


def upgrade(schema: str | None) -> None:
    for table, column in _columns().items():
        op.add_column(table, column, schema=schema, if_not_exists=schema is not None)
    version = sa.table(VERSION_TABLE, sa.column("database_id", sa.Text()), schema=schema)
    op.execute(version.update().values(database_id=_made(schema) if context.is_offline_mode() else uuid4().hex))


def downgrade(schema: str | None) -> None:
    for table, column in _columns().items():
        with op.batch_alter_table(table, schema=schema) as batch:
            batch.drop_column(column.name)


def _made(schema: str | None) -> sa.ColumnElement[str]:
    """Printed statements may run on many databases, and each makes its own id."""
    if schema is None:
        return sa.func.lower(sa.func.hex(sa.func.randomblob(16)))
    return sa.func.replace(sa.cast(sa.func.gen_random_uuid(), sa.Text()), "-", "")


def _columns() -> dict[str, sa.Column[object]]:
    return {"tenants": sa.Column("kv_version", sa.BigInteger()), VERSION_TABLE: sa.Column("database_id", sa.Text())}
