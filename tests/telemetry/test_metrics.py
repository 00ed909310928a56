"""The counters of a ledger: each event is counted once, where it happens, whoever's call it was."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import Encryption, KeyRing, Ledger, PostgreSQL, VersionConflict
from chatledger.errors import OutcomeUnknown
from chatledger.models.base import Model
from chatledger.types import Metrics
from tests.conftest import Database
from tests.conversations import turn, user
from tests.faults.connections import set_limits
from tests.faults.proxy import proxied
from tests.reasons import about


def counted(ledger: Ledger) -> dict[str, Any]:
    """The counters that are not 0."""
    return {name: value for name, value in ledger.metrics() if value}


async def test_appends_are_counted_with_their_messages_and_bytes(ledger: Ledger) -> None:
    assert ledger.metrics() == Metrics()
    assert isinstance(ledger.metrics(), Model)
    await ledger.threads.create("t")
    assert counted(ledger) == {}
    await ledger.messages.append("t", [user("abc", message_id="a")])
    first = ledger.metrics()
    await ledger.messages.append("t", [user("äbc", message_id="b"), user("", message_id="c")])
    second = ledger.metrics()
    assert (second.appends, second.messages) == (2, 3)
    other = first.bytes - 3  # the role, the id, and the name of the form
    assert other > 0
    assert second.bytes == first.bytes + 2 * other + 4
    assert (await ledger.messages.append("t", [user("abc", message_id="a")])).replayed
    retries = ledger.metrics().retries  # PostgreSQL looks for stored ids in a second attempt
    assert ledger.metrics() == second.model_copy(update={"replays": 1, "retries": retries})


async def test_tenants_users_and_transactions_count_together(ledger: Ledger) -> None:
    for view in (ledger, ledger.tenant("other"), ledger.user("ada")):
        await view.threads.create("t" if view is not ledger else "mine")
    await ledger.messages.append("mine", turn())
    await ledger.tenant("other").messages.append("t", turn())
    async with ledger.user("ada").begin() as tx:
        await tx.messages.append("t", turn())
        assert ledger.metrics().running == 1
    assert ledger.metrics().appends == 3
    assert ledger.metrics() == ledger.tenant("x").metrics() == ledger.user("x").metrics()
    assert ledger.metrics().running == 0


async def test_conflicts_are_counted(ledger: Ledger) -> None:
    await ledger.messages.append("t", turn(), create=True)
    with pytest.raises(VersionConflict):
        await ledger.messages.append("t", turn(), expected=0)
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.put(("thread", "t"), "k", 1, expected=3)
    assert counted(ledger)["conflicts"] == 2


async def test_the_queue_is_as_long_as_the_writes_that_wait(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    appends = [asyncio.create_task(ledger.messages.append("t", [user(str(n))])) for n in range(20)]
    longest = 0
    while not all(append.done() for append in appends):
        await asyncio.sleep(0)
        longest = max(longest, ledger.metrics().queue_length)
    assert 1 <= longest <= 20
    assert ledger.metrics().queue_length == 0
    assert ledger.metrics().appends == 20
    await asyncio.gather(*appends)


async def test_a_closed_ledger_still_tells(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
    assert ledger.metrics().appends == 1


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def test_retries_after_lost_connections_are_counted(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        assert ledger.metrics().retries == 0
        proxy.cut("after", 1)
        await ledger.messages.append("t", turn())
        assert (ledger.metrics().retries, ledger.metrics().lost_connections) == (1, 1)
        proxy.cut("before", 1)
        await ledger.threads.get("t")
        assert (ledger.metrics().retries, ledger.metrics().lost_connections) == (2, 2)
        assert ledger.metrics().unknown_outcomes == 0


async def test_a_retry_where_another_process_was_faster_is_counted(pg_database: Database) -> None:
    async with pg_database.open() as one, pg_database.open() as other:
        await one.threads.create("t")
        await one.messages.append("t", turn())
        await other.messages.append("t", turn())
        await one.messages.append("t", turn())  # on a cached tip that is stale
        assert (one.metrics().retries, one.metrics().lost_connections, one.metrics().conflicts) == (1, 0, 0)


async def test_an_unknown_outcome_is_counted(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        set_limits(ledger, timeout=0.3)
        proxy.cut("after", 1)
        proxy.down = True
        with pytest.raises(OutcomeUnknown):
            await ledger.messages.append("t", turn())
        assert ledger.metrics().unknown_outcomes == 1
        assert ledger.metrics().appends == 1
        proxy.down = False


async def test_waits_for_a_connection_are_counted(pg_database: Database) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        before = ledger.metrics()
        await ledger.messages.append("t", turn())
        await ledger.threads.get("t")
        assert ledger.metrics().pool_waits == before.pool_waits  # the one connection was free
        async with ledger.begin() as tx:
            await tx.threads.get("t")
            waiting = asyncio.create_task(ledger.threads.count())
            await asyncio.sleep(0.02)
        await waiting
        after = ledger.metrics()
        assert after.pool_waits == before.pool_waits + 1
        assert after.pool_wait_seconds > before.pool_wait_seconds


# --- Cells ------------------------------------------------------------------------------------------------------------


async def test_encrypted_cells_are_counted_by_their_key(database: Database) -> None:
    older, newer = bytes(32), bytes(range(32))
    rings = {"default": KeyRing({"k1": older}), "other": KeyRing({"k2": newer})}
    async with database.open(encryption=Encryption(rings.get)) as ledger:
        assert ledger.metrics().cells == {}
        await ledger.threads.create("t", title="one")
        await ledger.threads.create("u")
        assert ledger.metrics().cells == {"k1": 1}
        await ledger.tenant("other").threads.create("t", title="two", metadata={"three": 3})
        assert ledger.metrics().cells == {"k1": 1, "k2": 2}
        rings["default"] = KeyRing({"k1": older, "k2": newer}, current="k2")
        await ledger.reencrypt()
        assert (await ledger.threads.get("t")).title == "one"
        assert ledger.metrics().cells == {"k1": 1, "k2": 3}
    assert ledger.metrics().cells == {"k1": 1, "k2": 3}
