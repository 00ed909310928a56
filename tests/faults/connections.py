"""The connections of a ledger on PostgreSQL: after every fault none may be left busy."""

from __future__ import annotations

from typing import Any

from chatledger import Ledger
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from chatledger.storage.drivers.asyncpg import AsyncpgConnections


def connections_of(ledger: Ledger) -> AsyncpgConnections:
    database = ledger._database
    assert isinstance(database, PostgresqlDatabase)
    return database._connections


def set_limits(ledger: Ledger, *, timeout: float | None = None, response_timeout: float | None = None) -> None:
    """Change the time limit of an open ledger, or how long a connection may be silent: what went before had time."""
    connections = connections_of(ledger)
    if timeout is not None:
        ledger._database.timeout = connections.timeout = timeout
    if response_timeout is not None:
        connections.response_timeout = response_timeout


def none_idle(ledger: Ledger) -> None:
    """All of them back in the pool."""
    gate = connections_of(ledger)._gate
    while gate.idle:
        gate.idle.pop().close()
        gate.leave()


def busy(ledger: Ledger) -> int:
    """Connections that a call uses now."""
    connections = connections_of(ledger)
    pool: Any = connections._engine.pool
    return int(pool.checkedout()) - len(connections._gate.idle)
