"""The parameters of a PostgreSQL URL, as its users write them."""

from __future__ import annotations

import pytest

from chatledger import Ledger, StorageError
from tests.conftest import Database
from tests.faults.boundaries import bounded
from tests.storage.raw import query

CANARY = "c4n4ry"


async def questions(database: Database, parameters: str) -> int:
    """How many first words a client said on its first connection: one more where it asked for TLS."""
    async with bounded(database.url) as proxy:
        ledger = await Ledger.open(f"{proxy.url}?{parameters}")
        await ledger.close()
        return proxy.kinds[: proxy.kinds.index("client p") if "client p" in proxy.kinds else 3].count("client 0")


@pytest.mark.parametrize(("parameters", "count"), [("sslmode=disable", 1), ("sslmode=prefer", 2), ("ssl=disable", 1)])
async def test_sslmode_is_applied(pg_database: Database, parameters: str, count: int) -> None:
    assert await questions(pg_database, parameters) == count


@pytest.mark.parametrize("parameters", ["sslmode=require", "ssl=require", "sslmode=require&channel_binding=prefer"])
async def test_a_server_without_tls_is_refused_where_it_is_required(pg_database: Database, parameters: str) -> None:
    with pytest.raises(StorageError, match="SSL"):
        await Ledger.open(f"{pg_database.url}?{parameters}")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        (f"sslmode={CANARY}", "sslmode"),
        (f"sslmode=verify-full&sslrootcert=/{CANARY}", "no such file as its sslrootcert"),
        (f"channel_binding=require&password={CANARY}", "channel_binding"),
        ("keepalives=1", "keepalives"),
        (f"connect_timeout={CANARY}", "connect_timeout"),
        ("sslmode=disable&sslmode=require", "sslmode"),
    ],
)
async def test_an_unsupported_parameter_is_refused_by_name(pg_database: Database, parameters: str, named: str) -> None:
    with pytest.raises(StorageError, match=named):
        await Ledger.open(f"{pg_database.url}?{parameters}")


async def test_parameters_of_libpq_and_of_asyncpg_are_passed_on(pg_database: Database) -> None:
    said = "connect_timeout=7&application_name=mine&options=-c%20geqo%3Doff&statement_cache_size=0"
    async with Ledger.open(f"{pg_database.url}?{said}") as ledger:
        await ledger.threads.list()
        names = await query(
            pg_database, "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        )
    assert ("mine",) in names
