"""The statements that reach the drivers, and what is wrong with them if the tables are distributed by tenant."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import asyncpg
import pytest
from asyncpg.prepared_stmt import PreparedStatement

from tests.storage.bound_tables import TABLES, unbound_tables

_OURS = re.compile(rf"\b({'|'.join(TABLES)})\b")  # no BEGIN, COMMIT or SET, and few looks at the catalogues


class Sent(NamedTuple):
    """A statement that a driver is told to run. `many`: once for each row, and the values are those of all rows."""

    text: str
    values: Sequence[Any] = ()
    many: bool = False


Note = Callable[[Any, Sent], None]
"""Takes a connection of the driver, and what it is told to run."""


def record(monkeypatch: pytest.MonkeyPatch, of: Callable[[Any], bool] = lambda _: True) -> list[str]:
    """Each statement that asyncpg runs from now on, on the connections that `of` takes, in one line. A COPY stands here
    as the INSERT that it is. What asyncpg asks the server for itself is not here.
    """
    statements: list[str] = []

    def note(connection: Any, sent: Sent) -> None:
        if of(connection):
            statements.append(" ".join(sent.text.split()))

    note_asyncpg(monkeypatch, note)
    return statements


def note_asyncpg(monkeypatch: pytest.MonkeyPatch, note: Note) -> None:
    """All that asyncpg has to run a statement: on a connection, of a prepared statement, and a COPY."""
    for name in ("execute", "executemany", "fetch", "fetchval", "fetchrow"):

        def told(own: Any, text: str, *values: Any, many: bool = name == "executemany", **_: Any) -> None:
            note(own, Sent(text, values, many))

        def asked(own: Any, *values: Any, many: bool = name == "executemany", **_: Any) -> None:
            note(own._connection, Sent(own.get_query(), values, many))

        _wrap(monkeypatch, asyncpg.Connection, name, told)
        _wrap(monkeypatch, PreparedStatement, name if name != "execute" else "cursor", asked)

    def copied(own: Any, table: str, *, columns: Any, schema_name: str | None = None, **_: Any) -> None:
        places = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
        note(own, Sent(f'INSERT INTO "{schema_name}".{table} ({", ".join(columns)}) VALUES ({places})', many=True))

    _wrap(monkeypatch, asyncpg.Connection, "copy_records_to_table", copied)


def _wrap(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, before: Callable[..., None]) -> None:
    original = getattr(owner, name)

    def wrapped(self: Any, *args: Any, **named: Any) -> Any:
        before(self, *args, **named)
        return original(self, *args, **named)

    monkeypatch.setattr(owner, name, wrapped)


def note_sqlite(monkeypatch: pytest.MonkeyPatch, note: Note) -> None:
    """All that connections to a SQLite file run which are made from now on."""

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            note(self.connection, Sent(sql, args))
            return super().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            note(self.connection, Sent(sql, args, many=True))
            return super().executemany(sql, *args)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, *args: Any) -> Any:
            return self.cursor().execute(*args)

        def executemany(self, *args: Any) -> Any:
            return self.cursor().executemany(*args)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **named: connect(*args, **{"factory": Connection, **named}))


EXCEPTIONS = {
    'SELECT 1 FROM "chatledger".tenants WHERE false': "a ping asks whether the tables can be read, and reads no row",
}
"""Statements with a table that is not bound, each with the reason. Migrations are not here: no ledger sends them. What
asks the catalogues, or for the revision of the schema, names no table of a tenant.
"""


def unbound(statements: Iterable[str]) -> dict[str, list[str]]:
    """The statements with a table that is not bound to the tenant, and these tables."""
    asked = {one for one in statements if _OURS.search(one)} - EXCEPTIONS.keys()
    found = {one: list(unbound_tables(one)) for one in asked}
    return {one: tables for one, tables in found.items() if tables}
