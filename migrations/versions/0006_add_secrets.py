"""Secrets of a tenant, and the record that a database is encrypted as a whole.

The record stands beside the version, because it is about no tenant and every role reads that row already.

The previous release is still running while this revision executes, and may be deployed again. It knows none of the new
columns, all of which may stay NULL. It writes tombstones and digests of its own kind, which this release still finds.
It does not know that a database is encrypted as a whole, so record that once every process runs the new release.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade(schema: str | None) -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column, schema=schema, if_not_exists=schema is not None)


def downgrade(schema: str | None) -> None:
    for table, columns in _columns().items():
        with op.batch_alter_table(table, schema=schema) as batch:
            for column in columns:
                batch.drop_column(column.name)


def _columns() -> dict[str, list[sa.Column[object]]]:
    moment = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
    return {
        "tenants": [sa.Column("digest_secret", sa.Text()), sa.Column("tombstone_secret", sa.Text())],
        "chatledger_version": [sa.Column("encrypted_at", moment)],
    }
