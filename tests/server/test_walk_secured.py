"""The walk under row-level security, as the role of an application: the policies hide nothing that is a user's own, and
what the library forgets to filter they do not show.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from chatledger import Ledger, PostgreSQL
from chatledger.admin import migrate
from chatledger.server import ServerLimits, create_app
from tests.conftest import Database
from tests.server import test_walk
from tests.server.conftest import by_header
from tests.server.test_walk import CALLERS, walk
from tests.server.visits import AGENTS, SERVICE, store_things
from tests.storage.raw import Run, raw_connection
from tests.storage.schema.test_row_security import owned, secured, without_filter

__all__ = ["owned", "secured"]  # fixtures


def app_of(ledger: Ledger) -> FastAPI:
    limits = ServerLimits(stream_seconds=0.1)
    return create_app(ledger, authenticate=by_header, answers=AGENTS, limits=limits, service=SERVICE)


@pytest.fixture
async def rows_of(pg_url: str) -> AsyncIterator[Run]:
    """All rows, which a superuser sees."""
    async with raw_connection(Database("postgresql", pg_url)) as run:
        yield run


@pytest.mark.parametrize("caller", CALLERS)
async def test_nobody_finds_or_changes_what_is_not_theirs(caller: str, secured: str, rows_of: Run) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        assert await walk(app_of(ledger), ledger, rows_of, caller, await store_things(ledger)) == []


@pytest.mark.parametrize("caller", [name for name, (_, tenant) in CALLERS.items() if tenant != "default"])
async def test_without_the_librarys_filter_another_tenant_is_still_hidden(
    caller: str, secured: str, rows_of: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        given = await store_things(ledger)
    without_filter(monkeypatch)
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:  # it has prepared no statement yet
        assert await walk(app_of(ledger), ledger, rows_of, caller, given) == []


async def test_without_filter_and_policies_the_walk_notices(
    pg_url: str, rows_of: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(migrate, pg_url)
    async with Ledger.open(pg_url) as ledger:
        given = await store_things(ledger)
    without_filter(monkeypatch)
    monkeypatch.setattr(test_walk, "empty", _leave)  # it would delete what is Bob's
    async with Ledger.open(pg_url) as ledger:
        breaches = await walk(app_of(ledger), ledger, rows_of, "elsewhere", given)
    noticed = {breach.split(" Visit")[0] for breach in breaches}
    assert noticed >= {"list_threads", "get_run", "GET /agent-service/threads", "POST /agent-service/{agent}/history"}


async def _leave(elsewhere: Ledger) -> None:
    pass
