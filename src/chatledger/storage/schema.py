"""The schema of a database: what revision it is at, making it anew, and whether this release can work with it.

A new SQLite file is made from the tables and stamped, so that opening one costs no migration tool; everything else is
Alembic's, in `migrate.py`. Revisions are numbered, so older and newer can be told apart without their files.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from chatledger.errors import SchemaMismatch
from chatledger.storage.tables import SCHEMA, metadata
from chatledger.storage.views import VIEWS, create_view

HEAD = "0001"
"""The revision of these tables: the newest under migrations/versions."""
VERSION_TABLE = "chatledger_version"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """`found` is None for a database without our tables."""

    found: str | None
    expected: str

    @property
    def usable(self) -> bool:
        """One step newer is a release that is being rolled out; older, or newer than that, is not ours to touch."""
        return self.found is not None and 0 <= int(self.found) - int(self.expected) <= 1


def read_status(connection: Connection, schema: str | None) -> SchemaStatus:
    if not inspect(connection).has_table(VERSION_TABLE, schema=schema):
        return SchemaStatus(None, HEAD)
    found = connection.execute(text(f"SELECT version_num FROM {_prefix(schema)}{VERSION_TABLE}")).scalar()
    return SchemaStatus(found, HEAD)


def require_usable(status: SchemaStatus, command: str) -> None:
    """Raises SchemaMismatch with the command that mends it."""
    if status.usable:
        return
    if status.found is not None and int(status.found) > int(status.expected):
        newer = f"the database is at schema {status.found}, newer than this release ({status.expected}) can read"
        raise SchemaMismatch(status.found, status.expected, "pip install -U chatledger", newer)
    raise SchemaMismatch(status.found, status.expected, command)


def create_schema(connection: Connection, schema: str | None) -> None:
    """All tables and views from the metadata, stamped with HEAD, in a database that has none of them."""
    mapped = connection.execution_options(schema_translate_map={SCHEMA: schema})
    if schema is not None:
        mapped.execute(CreateSchema(schema, if_not_exists=True))
    metadata.create_all(mapped, checkfirst=False)
    create_views(mapped, schema)
    mapped.execute(
        text(f"CREATE TABLE {_prefix(schema)}{VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    )
    mapped.execute(text(f"INSERT INTO {_prefix(schema)}{VERSION_TABLE} VALUES (:head)"), {"head": HEAD})


def create_views(connection: Connection, schema: str | None) -> None:
    for name in VIEWS:
        connection.exec_driver_sql(create_view(name, connection.dialect.name, schema))


def _prefix(schema: str | None) -> str:
    return f'"{schema}".' if schema else ""
