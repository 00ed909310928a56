"""The version of a value never comes back: not after a deletion, and not where the clock steps back meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from chatledger import Ledger, NewThread, PostgreSQL, Put, VersionConflict
from tests.conftest import Database
from tests.conversations import user
from tests.reasons import about
from tests.storage.raw import query
from tests.storage.schema.test_row_security import owned, secured

__all__ = ["owned", "secured"]  # fixtures

TENANT, ADA, THREAD = ("tenant",), ("user", "ada"), ("thread", "t")
HOUR = 3_600_000_000
"""An hour in microseconds."""


@pytest.fixture
async def thread(ledger: Ledger) -> str:
    return (await ledger.user("ada").threads.create("t")).thread_id


async def an_hour_ahead(database: Database) -> None:
    """Every value as a process wrote it whose clock was an hour ahead, before it was set back."""
    await query(database, f"UPDATE kv SET version = version + {HOUR}")


async def deleted_versions(database: Database) -> dict[str, int | None]:
    return dict(await query(database, "SELECT tenant_id, kv_version FROM tenants"))


@pytest.mark.parametrize("scope", [TENANT, ADA, (*ADA, "adk"), THREAD], ids=str)
async def test_a_stale_put_is_refused_after_a_deletion_and_a_step_of_the_clock(
    database: Database, ledger: Ledger, thread: str, scope: Any
) -> None:
    """One worker holds a version, and is slow. Others delete the value, and put it again on a machine whose clock is
    behind, until their versions would reach the one that is held.
    """
    await ledger.kv.put(scope, "plan", "read by the slow worker")
    await an_hour_ahead(database)
    held = await ledger.kv.get(scope, "plan")
    assert held is not None
    assert await ledger.kv.delete(scope, "plan")
    again = await ledger.kv.put(scope, "plan", "another")
    assert again.version == held.version + 1
    assert await ledger.kv.get(scope, "plan") == again
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.kv.put(scope, "plan", "stale", expected=held.version)
    assert await ledger.kv.delete(scope, "plan", expected=again.version)
    merged = await ledger.kv.put(scope, "plan", {"a": 1}, merge=True)
    assert merged.version == again.version + 1


async def refuse_stale_puts(ledger: Ledger, database: Database) -> None:
    """In the tenant's view and in a user's."""
    ada = ledger.user("ada")
    await ada.threads.create("t")
    for view, scope in ((ledger, TENANT), (ada, ADA), (ada, THREAD), (ada, THREAD)):
        await view.kv.put(scope, "k", 1)
        await an_hour_ahead(database)
        held = await view.kv.get(scope, "k")
        assert held is not None
        assert await view.kv.delete(scope, "k")
        assert (await view.kv.put(scope, "k", 2, expected=0)).version == held.version + 1
        with pytest.raises(VersionConflict, check=about("value")):
            await view.kv.put(scope, "k", "stale", expected=held.version)
    highest = max([one.version for one in await ada.kv.list(THREAD)])
    await ada.threads.delete("t")
    await ada.threads.create("t")
    assert (await ada.kv.put(THREAD, "k", 3)).version == highest + 1


async def test_it_is_refused_in_a_users_view(database: Database, ledger: Ledger) -> None:
    await refuse_stale_puts(ledger, database)


async def test_it_is_refused_under_row_level_security(pg_url: str, secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await refuse_stale_puts(ledger, Database("postgresql", pg_url))


async def test_one_transaction_deletes_and_puts(database: Database, ledger: Ledger) -> None:
    await ledger.kv.put(TENANT, "plan", 1)
    await an_hour_ahead(database)
    held = await ledger.kv.get(TENANT, "plan")
    assert held is not None
    async with ledger.begin() as tx:
        await tx.kv.delete(TENANT, "plan")
        again = await tx.kv.put(TENANT, "plan", 2, expected=0)
    assert again.version == held.version + 1


async def test_a_value_of_another_key_and_an_update_are_as_before(database: Database, ledger: Ledger) -> None:
    early = await ledger.kv.put(TENANT, "early", 1)
    await ledger.kv.put(TENANT, "k", 1)
    await an_hour_ahead(database)
    await query(database, f"UPDATE kv SET version = version - {HOUR} WHERE key = 'early'")
    await ledger.kv.delete(TENANT, "k")
    assert (await ledger.kv.put(TENANT, "early", 2, expected=early.version)).version == early.version + 1
    other = await ledger.tenant("other").kv.put(TENANT, "k", 1)
    assert other.version < early.version + HOUR


async def erase_thread(ledger: Ledger) -> None:
    await ledger.erasures.erase(("thread", "t"))


async def erase_tenant(ledger: Ledger) -> None:
    await ledger.erasures.erase(("tenant",))


async def erase_user(ledger: Ledger) -> None:
    await ledger.erasures.erase(("user", "ada"))


async def delete_thread(ledger: Ledger) -> None:
    await ledger.threads.delete("t")


async def retain(ledger: Ledger) -> None:
    await ledger.threads.delete_inactive(older_than=timedelta(0))


async def delete_value(ledger: Ledger) -> None:
    await ledger.kv.delete(THREAD, "k")


async def delete_in_a_transaction(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.threads.delete("t")


@pytest.mark.parametrize(
    ("deletes", "scope"),
    [
        (delete_value, THREAD),
        (delete_thread, THREAD),
        (delete_in_a_transaction, THREAD),
        (retain, THREAD),
        (erase_thread, THREAD),
        (erase_user, THREAD),
        (erase_user, ADA),
        (erase_tenant, THREAD),
        (erase_tenant, ADA),
        (erase_tenant, TENANT),
    ],
)
async def test_whatever_deletes_a_value_keeps_its_version(
    database: Database, ledger: Ledger, thread: str, deletes: Callable[[Ledger], Awaitable[None]], scope: Any
) -> None:
    for name, version in (("k", HOUR), ("l", 2 * HOUR)):
        await ledger.kv.put(scope, name, 1)
        await query(database, f"UPDATE kv SET version = version + {version} WHERE key = '{name}'")
    highest = max([one.version for one in await ledger.kv.list(scope) if deletes is not delete_value or one.key == "k"])
    await deletes(ledger)
    assert (await deleted_versions(database))["default"] == highest
    await ledger.kv.put(TENANT, "after", 1)
    assert [one.version for one in await ledger.kv.list(TENANT) if one.key == "after"] == [highest + 1]


async def test_a_deletion_without_values_keeps_no_version(database: Database, ledger: Ledger, thread: str) -> None:
    assert await ledger.kv.delete(THREAD, "none") is False
    await ledger.threads.delete("t")
    assert (await deleted_versions(database)).get("default") is None


async def test_the_highest_version_is_never_lowered(database: Database, ledger: Ledger) -> None:
    for key in ("a", "b"):
        await ledger.kv.put(TENANT, key, 1)
    await query(database, f"UPDATE kv SET version = version + {HOUR} WHERE key = 'a'")
    await ledger.kv.delete(TENANT, "a")
    before = await deleted_versions(database)
    await ledger.kv.delete(TENANT, "b")
    assert await deleted_versions(database) == before


# --- With an append ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expects", [None, 0])
@pytest.mark.parametrize("warm", [True, False])
async def test_an_append_puts_above_what_was_deleted(
    database: Database, ledger: Ledger, thread: str, expects: int | None, warm: bool
) -> None:
    await ledger.messages.append("t", [user("1")], kv={"plan": 1, "stays": 1})
    await an_hour_ahead(database)
    held = await ledger.kv.get(THREAD, "plan")
    assert held is not None
    await ledger.kv.delete(THREAD, "plan")
    async with database.open() as other:
        writer = ledger if warm else other
        given = 2 if expects is None else Put(2, expected=expects)
        await writer.messages.append("t", [user("2")], rules="lenient", kv={"plan": given, "stays": 2})
    again, stays = await ledger.kv.get(THREAD, "plan"), await ledger.kv.get(THREAD, "stays")
    assert again is not None
    assert stays is not None
    assert again.version == held.version + 1
    assert (again.value, stays.value) == (2, 2)
    with pytest.raises(VersionConflict, check=about("value")):
        stale = Put("stale", expected=held.version)
        await ledger.messages.append("t", [user("3")], rules="lenient", kv={"plan": stale})


async def test_an_append_that_begins_a_thread_again_puts_above_what_was_deleted(
    database: Database, ledger: Ledger, thread: str
) -> None:
    await ledger.kv.put(THREAD, "plan", 1)
    await an_hour_ahead(database)
    held = await ledger.kv.get(THREAD, "plan")
    assert held is not None
    await ledger.threads.delete("t")
    await ledger.messages.append("t", [user("1")], create=NewThread(), kv={"plan": 2})
    again = await ledger.kv.get(THREAD, "plan")
    assert again is not None
    assert again.version == held.version + 1


# --- Transactions that wait for each other, on PostgreSQL -------------------------------------------------------------


_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.mark.parametrize("how", ["put", "put 0", "merge", "append", "append 0"])
async def test_a_put_that_waited_for_the_deletion_of_its_key_starts_above_it(pg_database: Database, how: str) -> None:
    """The deletion is not committed when the put begins, so what the put's first statement sees is from before."""
    async with pg_database.open() as ledger, pg_database.open() as other:
        await ledger.threads.create("t")
        await other.messages.append("t", [user("0")])
        await ledger.kv.put(THREAD, "k", {"a": 1})
        await an_hour_ahead(pg_database)
        held = await ledger.kv.get(THREAD, "k")
        assert held is not None

        async def put() -> None:
            if how.startswith("append"):
                given = Put(2, expected=0) if how == "append 0" else 2
                await other.messages.append("t", [user("1")], rules="lenient", kv={"k": given})
            elif how == "merge":
                await other.kv.put(THREAD, "k", {"b": 2}, merge=True)
            else:
                await other.kv.put(THREAD, "k", 2, expected=0 if how == "put 0" else None)

        async with ledger.begin() as tx:
            await tx.kv.delete(THREAD, "k")
            putting = asyncio.create_task(put())
            async with asyncio.timeout(60):
                while not await query(pg_database, _WAITING):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        await putting
        again = await ledger.kv.get(THREAD, "k")
        assert again is not None
        assert again.version == held.version + 1
        with pytest.raises(VersionConflict, check=about("value")):
            await ledger.kv.put(THREAD, "k", "stale", expected=held.version)


async def test_sixteen_writers_of_different_keys_take_no_common_lock(pg_database: Database) -> None:
    """Each holds its transaction open, so one that took a lock of another would wait for ever. The row of the tenant,
    which has the versions of what was deleted, is not even marked as read.
    """
    async with pg_database.open() as ledger:
        await ledger.kv.put(TENANT, "gone", 1)
        await ledger.kv.delete(TENANT, "gone")
        row = "SELECT xmin::text, xmax::text, ctid::text FROM tenants"
        before = await query(pg_database, row)
        put, done = [asyncio.Event() for _ in range(16)], asyncio.Event()
        async with pg_database.open() as wide:

            async def write(number: int) -> None:
                async with wide.begin() as tx:
                    await tx.kv.put(TENANT, f"k{number}", number)
                    put[number].set()
                    await done.wait()

            writing = [asyncio.create_task(write(number)) for number in range(16)]
            await asyncio.gather(*[one.wait() for one in put])
            locked = await query(
                pg_database,
                "SELECT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
                " WHERE l.relation = 'tenants'::regclass",
            )
            done.set()
            await asyncio.gather(*writing)
        assert {mode for _, mode in locked} == {"AccessShareLock"}
        assert await query(pg_database, row) == before
        assert len(await ledger.kv.list(TENANT)) == 16
