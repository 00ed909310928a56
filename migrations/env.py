"""Alembic's environment for chatledger's own revisions: an environment of its own, with its own version table.

`chatledger.migrate` passes the connection and the schema; it holds the lock and owns the transaction's end.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

VERSION_TABLE = "chatledger_version"

config = context.config


def run_online(connection: Connection, schema: str | None) -> None:
    if schema is not None:
        connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
        connection.commit()
    context.configure(
        connection=connection,
        version_table=VERSION_TABLE,
        version_table_schema=schema,
        transaction_per_migration=True,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations(schema=schema)


def run_offline(dialect: str, schema: str | None) -> None:
    context.configure(
        dialect_name=dialect,
        version_table=VERSION_TABLE,
        version_table_schema=schema,
        transaction_per_migration=True,
        literal_binds=True,
        as_sql=True,
    )
    if schema is not None:
        context.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    with context.begin_transaction():
        context.run_migrations(schema=schema)


if context.is_offline_mode():
    run_offline(config.attributes["dialect"], config.attributes["schema"])
else:
    run_online(config.attributes["connection"], config.attributes["schema"])
