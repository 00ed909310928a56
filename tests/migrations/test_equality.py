"""The migrations and the tables say the same: nothing is pending, and both ways lead to one schema."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from chatledger.admin import migrate
from chatledger.storage.schema.tables import SCHEMA, metadata
from chatledger.storage.upgrade.versions import VERSION_TABLE, create_schema
from tests.conftest import Database
from tests.migrations.access import connected, run_script, schema_of
from tests.migrations.catalog import read_catalog


def pending(database: Database) -> list[object]:
    if database.kind == "postgresql":
        return connected(database, compare)
    engine = create_engine("sqlite://", poolclass=NullPool)  # a file has no schemas, but it can be attached as one
    with engine.connect() as connection:
        connection.execute(text("ATTACH :path AS chatledger"), {"path": database.url})
        return compare(connection)


def compare(connection: Connection) -> list[object]:
    options = {
        "compare_type": True,
        "compare_server_default": True,
        "include_schemas": True,
        "include_name": lambda name, type_, _parents: type_ != "schema" or name == SCHEMA,
        "version_table": VERSION_TABLE,
        "version_table_schema": SCHEMA,
    }
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def test_nothing_is_pending(database: Database) -> None:
    assert pending(database) == []


def test_what_is_pending_is_found(database: Database) -> None:
    prefix = "chatledger." if database.kind == "postgresql" else ""
    run_script(database, f"ALTER TABLE {prefix}threads ADD COLUMN colour TEXT; DROP INDEX {prefix}messages_run_id_idx")
    found = pending(database)
    assert {change[0] for change in found if isinstance(change, tuple)} == {"remove_column", "add_index"}


def test_a_migrated_database_equals_one_made_from_the_tables(empty: Database, other: Database) -> None:
    connected(empty, lambda connection: create_schema(connection, schema_of(empty)))
    migrate(other.url)
    assert read_catalog(empty) == read_catalog(other)


def test_a_check_constraint_with_another_text_is_a_difference(empty: Database, other: Database) -> None:
    migrate(empty.url)
    migrate(other.url)
    run_script(other, OTHER_CHECK[other.kind])
    assert read_catalog(empty) != read_catalog(other)


OTHER_CHECK = {
    "postgresql": """
        ALTER TABLE chatledger.messages DROP CONSTRAINT messages_seq_check;
        ALTER TABLE chatledger.messages ADD CONSTRAINT messages_seq_check CHECK (seq >= 0)""",
    "sqlite": """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, 'seq >= 1', 'seq >= 0') WHERE name = 'messages'""",
}
