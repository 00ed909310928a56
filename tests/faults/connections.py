"""The connections of a ledger on PostgreSQL: after every fault none may be left busy."""

from __future__ import annotations

from chatledger import Ledger
from chatledger.storage.asyncpg_connection import AsyncpgConnections
from chatledger.storage.pooled import PostgresqlDatabase


def connections_of(ledger: Ledger) -> AsyncpgConnections:
    database = ledger._database
    assert isinstance(database, PostgresqlDatabase)
    return database._connections
