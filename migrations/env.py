"""Alembic's environment for chatledger's own revisions: an environment of its own, with its own version table.

`chatledger.admin.migrate` passes the connection, the schema and the seconds to wait for a lock. It holds the migrator's
lock, ends the transaction on SQLite and retries on PostgreSQL. `on_version_apply` is called after each revision, in the
revision's transaction, and keeps row-level security up to date, which no revision does.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, event, inspect, text

VERSION_TABLE = "chatledger_version"

config = context.config


def run_online(connection: Connection, schema: str | None) -> None:
    if schema is not None:
        # Check first: IF NOT EXISTS needs the right to create schemas even if the schema exists.
        if not inspect(connection).has_schema(schema):
            connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
        connection.commit()
        event.listen(connection, "begin", _prepare)
    context.configure(
        connection=connection,
        version_table=VERSION_TABLE,
        version_table_schema=schema,
        transaction_per_migration=True,
        render_as_batch=connection.dialect.name == "sqlite",
        on_version_apply=config.attributes["on_version_apply"],
    )
    with context.begin_transaction():
        context.run_migrations(schema=schema)


def _prepare(connection: Connection) -> None:
    """Limit the wait for locks in each revision's transaction. CONCURRENTLY runs outside of one and is not limited.

    Citus refuses to change a view after it changed the shards of a table in parallel. A plain PostgreSQL does not use
    that setting.
    """
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_milliseconds()}")
    connection.exec_driver_sql("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")


def _milliseconds() -> int:
    return int(config.attributes["lock_timeout"] * 1000)


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
        context.execute(f"SET lock_timeout = {_milliseconds()}")
        context.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    with context.begin_transaction():
        context.run_migrations(schema=schema)


if context.is_offline_mode():
    run_offline(config.attributes["dialect"], config.attributes["schema"])
else:
    run_online(config.attributes["connection"], config.attributes["schema"])
