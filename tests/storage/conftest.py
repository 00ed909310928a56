"""The storage suite on whatever PostgreSQL is asked for: plain, or hash-partitioned by tenant.

CHATLEDGER_TEST_PARTITIONS=4 makes each table of its template in four parts, which is what stands in for a database that
is distributed by tenant. With CHATLEDGER_TEST_DISTRIBUTED, each statement of a distributed ledger is held to what
such a database runs on one server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pytest
from sqlalchemy import event

from chatledger.admin import migrate
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from tests.conftest import Database
from tests.migrations.access import connected
from tests.migrations.partitions import create_partitioned_schema
from tests.postgres import Server
from tests.storage.sent import record, unbound

DISTRIBUTED = bool(os.environ.get("CHATLEDGER_TEST_DISTRIBUTED"))
PARTITIONS = int(os.environ.get("CHATLEDGER_TEST_PARTITIONS", "0"))


@pytest.fixture(scope="session")
def pg_template(pg_server: Server) -> Iterator[str]:
    with pg_server.database() as url:
        if PARTITIONS:
            template = Database("postgresql", url)
            connected(template, lambda connection: create_partitioned_schema(connection, partitions=PARTITIONS))
        else:
            migrate(url)
        yield url


@pytest.fixture(autouse=True)
def every_statement_binds_its_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each table of each statement that a distributed ledger sends is bound to the tenant."""
    connections: WeakSet[Any] = WeakSet()
    opened = PostgresqlDatabase.__init__

    def noted(self: Any, engine: Any, *args: Any, distributed: bool = False, **options: Any) -> None:
        if distributed:
            event.listen(engine.sync_engine, "checkout", lambda one, *_: connections.add(one.driver_connection))
        opened(self, engine, *args, distributed=distributed, **options)

    sent: list[str] = []
    if DISTRIBUTED:
        monkeypatch.setattr(PostgresqlDatabase, "__init__", noted)
        sent = record(monkeypatch, connections.__contains__)
    yield
    assert unbound(sent) == {}
