"""Holds each statement that a test sends to a distributed ledger to the one server that has the tenant's rows.

It is always on. With CHATLEDGER_TEST_DISTRIBUTED, `Database.open` opens distributed ledgers on PostgreSQL, unless the
test says otherwise, and so do the commands and the server in the process of a test of theirs. What a process of its own
sends is not heard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pytest
from sqlalchemy import event

from chatledger.storage.databases import open as opening
from chatledger.storage.databases.external_connection import ExternalConnection
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from tests.storage.sent import Sent, note_asyncpg, unbound

DISTRIBUTED = bool(os.environ.get("CHATLEDGER_TEST_DISTRIBUTED"))

OUTER = ("tests/cli/", "tests/server/")
"""Tests that open ledgers by their commands, and many of which need no PostgreSQL."""


class Heard:
    """What distributed ledgers send. A ledger knows that it is one after its first statements on a connection, so
    those of each connection are kept until then.
    """

    def __init__(self) -> None:
        self.statements: dict[str, None] = {}
        """Each once, in the order of their first times."""
        self._connections: WeakSet[Any] = WeakSet()
        self._before: WeakKeyDictionary[Any, dict[str, None]] = WeakKeyDictionary()

    def note(self, connection: Any, sent: Sent) -> None:
        known = connection in self._connections
        (self.statements if known else self._before.setdefault(connection, {}))[sent.text] = None

    def add(self, connection: Any) -> None:
        self._connections.add(connection)
        self.statements |= self._before.pop(connection, {})

    def listen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        note_asyncpg(monkeypatch, self.note)
        opened, entered = PostgresqlDatabase.__init__, ExternalConnection.__init__

        def open_noted(own: Any, engine: Any, *args: Any, distributed: bool = False, **options: Any) -> None:
            if distributed:
                event.listen(engine.sync_engine, "checkout", lambda one, *_: self.add(one.driver_connection))
            opened(own, engine, *args, distributed=distributed, **options)

        def enter_noted(own: Any, connection: Any, *args: Any, distributed: bool = False, **options: Any) -> None:
            if distributed:
                self.add(connection.sync_connection.connection.driver_connection)
            entered(own, connection, *args, distributed=distributed, **options)

        monkeypatch.setattr(PostgresqlDatabase, "__init__", open_noted)
        monkeypatch.setattr(ExternalConnection, "__init__", enter_noted)


@contextmanager
def hearing(monkeypatch: pytest.MonkeyPatch, test: str) -> Iterator[Heard]:
    """Hears until the end, and judges then."""
    if DISTRIBUTED and test.startswith(OUTER):
        monkeypatch.setattr(opening, "has_citus", lambda _: True)
    heard = Heard()
    heard.listen(monkeypatch)
    yield heard
    if found := unbound(heard.statements):
        raise AssertionError(f"tables that are not bound to the tenant: {found}")
