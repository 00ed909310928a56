"""The look-ups of tombstones, digests and secrets, and the comparisons of repeats, for whoever the ledger is opened.

As the tenant, as a user's view, as an application's role under row-level security, and distributed by tenant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from chatledger import KeyRing, Ledger, PostgreSQL
from chatledger.errors import Erased, IdConflict
from chatledger.ids import erasure_digest
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import KEYS, Database
from tests.conversations import assistant, user
from tests.storage.raw import query
from tests.storage.schema.test_row_security import owned, secured
from tests.storage.sent import record

__all__ = ["owned", "secured"]  # fixtures

SAID = [user("one"), assistant("two")]
OTHER = [user("one"), assistant("else")]


@dataclass(frozen=True)
class Way:
    """A way to open a ledger. `beneath` is the same database for a role that may change every row."""

    url: str
    beneath: Database
    options: dict[str, Any] = field(default_factory=dict)
    user: str | None = None

    @asynccontextmanager
    async def open(self, keys: KeyRing | None = None) -> AsyncIterator[tuple[Ledger, Ledger]]:
        """The ledger of the tenant, and the one that stores and repeats."""
        async with Ledger.open(self.url, **self.options, encryption=keys) as ledger:
            yield ledger, ledger if self.user is None else ledger.user(self.user)


@pytest.fixture(params=["sqlite, a view", "postgresql, a view", "row-level security", "distributed"])
def way(request: pytest.FixtureRequest) -> Way:
    if request.param == "row-level security":
        beneath = Database("postgresql", request.getfixturevalue("pg_url"))
        return Way(request.getfixturevalue("secured"), beneath, {"postgresql": PostgreSQL(rls=True)})
    name = "sqlite_database" if request.param.startswith("sqlite") else "pg_database"
    found: Database = request.getfixturevalue(name)
    if request.param == "distributed":
        return Way(found.url, found, {"postgresql": PostgreSQL(distributed=True)})
    return Way(found.url, found, user="ada")


with_and_without_keys = pytest.mark.parametrize("keys", [None, KEYS], ids=["without keys", "with keys"])


async def ways_to_create(own: Ledger, tenant: Ledger) -> list[Any]:
    made = [
        lambda: own.threads.create("t"),
        lambda: own.threads.create("t", exist_ok=True),
        lambda: own.messages.append("t", SAID, create=True),
        lambda: own.messages.append("t", SAID, create=True, idempotency_key="k"),
    ]
    thread = (await own.threads.create("kept")).model_copy(update={"thread_id": "t"})
    return [*made, lambda: load_threads(scope_of(tenant), [prepare_thread(scope_of(tenant), thread, SAID)])]


@with_and_without_keys
async def test_a_tombstone_is_found_and_only_in_its_tenant(way: Way, keys: KeyRing | None) -> None:
    async with way.open(keys) as (ledger, own):
        await own.messages.append("t", SAID, create=True)
        first = await own.erasures.erase(("thread", "t"))
        for create in await ways_to_create(own, ledger):
            with pytest.raises(Erased):
                await create()
        assert await ledger.erasures.find(("thread", "t")) == first
        beside = ledger.tenant("beside")
        assert await beside.erasures.find(("thread", "t")) is None
        await beside.messages.append("t", SAID, create=True)
        assert (await beside.erasures.erase(("thread", "t"))).subject != first.subject


async def test_a_tombstone_of_an_earlier_release_is_found(way: Way) -> None:
    async with way.open() as (ledger, own):
        await own.messages.append("t", SAID, create=True)
        await own.erasures.erase(("thread", "t"))
        old = erasure_digest("thread", "t")
        await query(way.beneath, f"UPDATE erasures SET subject = '{old}'")
        for create in await ways_to_create(own, ledger):
            with pytest.raises(Erased):
                await create()


@with_and_without_keys
async def test_a_repeat_of_what_is_gone_is_known_by_its_digest(way: Way, keys: KeyRing | None) -> None:
    async with way.open(keys) as (_, own):
        stored = await own.messages.append("t", SAID, create=True, idempotency_key="k")
        for message in stored.messages:
            await erase_at(scope_of(own), "t", message.seq or 0)
        for removes in (False, True):
            if removes:
                await own.messages.remove("t", stored.messages[1].message_id or "")
            assert (await own.messages.append("t", SAID, idempotency_key="k")).replayed
            with pytest.raises(IdConflict):
                await own.messages.append("t", OTHER, idempotency_key="k")
        assert [one.text for one in await own.messages.history("t")] == ["[redacted]"]


@with_and_without_keys
async def test_a_repeated_sync_is_known_by_what_is_stored(way: Way, keys: KeyRing | None) -> None:
    async with way.open(keys) as (_, own):
        await own.messages.append("t", [user("?")], create=True)
        stored = await own.messages.sync("t", SAID, branch=0, on_difference="branch")
        for redacts in (False, True):
            if redacts:
                await erase_at(scope_of(own), "t", stored.messages[1].seq or 0)
            assert (await own.messages.sync("t", SAID, branch=0, on_difference="branch")).replayed
        assert not (await own.messages.sync("t", OTHER, branch=0, on_difference="branch")).replayed
        assert len(await own.branches.list("t")) == 3


@with_and_without_keys
async def test_each_statement_is_bound_to_its_tenant(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch, keys: KeyRing | None
) -> None:
    sent = record(monkeypatch)
    way = Way(pg_database.url, pg_database, {"postgresql": PostgreSQL(distributed=True)})
    async with way.open(keys) as (ledger, own):
        sent.clear()
        await own.messages.append("d", SAID, create=True, idempotency_key="k")
        await erase_at(scope_of(own), "d", 1)
        assert (await own.messages.append("d", SAID, idempotency_key="k")).replayed
        await own.messages.sync("d", OTHER, branch=0, on_difference="branch")
        await own.messages.sync("d", OTHER, branch=0, on_difference="branch")
        await own.messages.append("t", SAID, create=True)
        await own.erasures.erase(("thread", "t"))
        for create in await ways_to_create(own, ledger):
            with pytest.raises(Erased):
                await create()
    assert sum("tombstone_secret" in one for one in sent) > 3
    assert any("digest" in one for one in sent)
