"""The schema version of a database: reads it, creates a new schema, and tells whether this release can use it.

A new SQLite file is created from the table definitions and stamped with the newest revision, so that creating one does
not load Alembic. Alembic does everything else, in `revisions.py`. Revisions are numbered, so this module can tell older
from newer without the revision files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, bindparam, inspect, text
from sqlalchemy.schema import CreateSchema

from chatledger.errors import InvalidArgument, SchemaMismatch
from chatledger.storage.schema import row_security
from chatledger.storage.schema.columns import Moment
from chatledger.storage.schema.tables import SCHEMA, metadata
from chatledger.storage.schema.views import VIEWS, create_view

HEAD = "0009"
"""The revision of these tables: the newest under migrations/versions."""
VERSION_TABLE = "chatledger_version"


_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The revision of a database's schema, and the revision that this release needs."""

    found: str | None
    """The revision of the database; None if it has no tables of chatledger."""
    expected: str
    """The revision that this release needs."""
    rls: bool = False
    """Whether row-level security is on for every table. Always False on SQLite."""
    encrypted: bool = False
    """Whether the database is recorded as encrypted, so that a ledger without keys stores nothing in it."""
    local_tables: tuple[str, ...] = ()
    """The tables that Citus does not distribute. `migrate` and `schema_status` read them; empty without Citus."""

    @property
    def usable(self) -> bool:
        """Whether this release can use the schema: its revision is the expected one, or one revision newer, so that a
        newer release can be rolled out.
        """
        return self.steps is not None and 0 <= self.steps <= 1

    @property
    def steps(self) -> int | None:
        """The number of revisions that the database is ahead of this release; None if its revision is unknown."""
        if self.found is None or not self.found.isdecimal():
            return None
        return int(self.found) - int(self.expected)

    @property
    def older(self) -> bool:
        """Whether the schema is older than this release needs, so that `migrate` has work to do."""
        return self.steps is not None and self.steps < 0


def require_schema_name(schema: str) -> str:
    """The name, if it is safe between double quotes in every statement. Upper case stays upper case."""
    if _SCHEMA_NAME.fullmatch(schema) is None:
        detail = f"must have up to 63 letters, digits, _ and -, with no digit in front, not {schema!r:.80}"
        raise InvalidArgument("schema", detail)
    return schema


def read_status(connection: Connection, schema: str | None) -> SchemaStatus:
    if not inspect(connection).has_table(VERSION_TABLE, schema=schema):
        return status_of(None)
    version = connection.execute(text(f"SELECT * FROM {_prefix(schema)}{VERSION_TABLE}")).mappings().first()
    row: Mapping[str, Any] = {} if version is None else dict(version)
    encrypted = row.get("encrypted_at") is not None  # a column that older revisions lack
    return replace(status_of(row.get("version_num")), rls=row_security.is_on(connection, schema), encrypted=encrypted)


def status_of(revision: str | None) -> SchemaStatus:
    return SchemaStatus(revision, HEAD)


def require_usable(status: SchemaStatus, command: str) -> None:
    """Raises SchemaMismatch with the command to run."""
    if status.usable:
        return
    if status.found is not None and not status.older:
        newer = f"the database is at schema {status.found}, newer than this release ({status.expected}) can read"
        raise SchemaMismatch(status.found, status.expected, "pip install -U chatledger", newer)
    raise SchemaMismatch(status.found, status.expected, command)


def create_schema(connection: Connection, schema: str | None) -> None:
    """Create all tables and views from the metadata, in a database without them, and stamp it with HEAD."""
    mapped = connection.execution_options(schema_translate_map={SCHEMA: schema})
    if schema is not None:
        mapped.execute(CreateSchema(schema, if_not_exists=True))
    metadata.create_all(mapped, checkfirst=False)
    create_views(mapped, schema)
    stamp(mapped, schema)


def record_encrypted(connection: Connection, schema: str | None) -> None:
    """Record that the database is encrypted, if its revision has a place for that. The new stamps wait for each
    transaction that has moved a tip, so none commits plain text later. They also make stale what each writer remembers
    of the branches: on a distributed database only a writer that looks finds the record.
    """
    if read_status(connection, schema).encrypted:
        return
    now = bindparam("now", datetime.now(UTC), Moment())
    connection.execute(text(f"UPDATE {_prefix(schema)}{VERSION_TABLE} SET encrypted_at = :now").bindparams(now))
    stamp = "CASE WHEN stamp > 0 THEN stamp - 1 ELSE 1 END"
    connection.exec_driver_sql(f"UPDATE {_prefix(schema)}branches SET stamp = {stamp}")


def create_views(connection: Connection, schema: str | None) -> None:
    for name in VIEWS:
        connection.exec_driver_sql(create_view(name, connection.dialect.name, schema))


def stamp(connection: Connection, schema: str | None) -> None:
    """Record HEAD in a version table like the one that Alembic and the revisions make.

    The table may exist already, empty and as Alembic makes it: a downgrade to `base` leaves it so.
    """
    table = _prefix(schema) + VERSION_TABLE
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
    moment = Moment().compile(dialect=connection.dialect)
    connection.exec_driver_sql(
        f"CREATE TABLE {table} (version_num VARCHAR(32) NOT NULL, encrypted_at {moment}, database_id TEXT, "
        f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
    )
    row = {"head": HEAD, "id": uuid4().hex}
    connection.execute(text(f"INSERT INTO {table} (version_num, database_id) VALUES (:head, :id)"), row)


def _prefix(schema: str | None) -> str:
    return f'"{schema}".' if schema else ""
