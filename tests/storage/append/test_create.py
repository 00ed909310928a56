"""An append that creates its thread: `create=True`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chatledger import InvalidArgument, Ledger, NewThread, Payload, Put, RuleViolation, ThreadNotFound, VersionConflict
from chatledger.errors import EncryptionError, Erased, IdConflict, LimitExceeded, RunConflict
from chatledger.repositories import scope_of
from chatledger.storage.lists.thread_ids import iterate_ids
from chatledger.transaction import as_user
from tests.conftest import KEYS, Database
from tests.conversations import result, texts, turn, user
from tests.faults.proxy import Proxy, proxied
from tests.places import at
from tests.reasons import about, because
from tests.storage.raw import count_rows, query

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


async def test_the_first_append_creates_the_thread(ledger: Ledger, database: Database) -> None:
    appended = await ledger.user("ada").messages.append(
        "t", turn(), run_id="r", create=NewThread(title="Weather", kind="chat")
    )
    thread = await ledger.threads.get("t")
    assert (thread.user_id, thread.kind, thread.title, thread.rules) == ("ada", "chat", "Weather", None)
    assert (thread.message_count, thread.active_branch, thread.version) == (5, 0, 0)
    assert (appended.last_seq, appended.replayed) == (5, False)
    assert (await ledger.messages.history("t")).mark == appended.mark
    assert [one.findings async for one in ledger.check("t")] == [[]]
    again = await ledger.user("ada").messages.append("t", turn(), create=NewThread(title="Other", kind="other"))
    assert again.last_seq == 10
    same = await ledger.threads.get("t")
    assert (same.kind, same.title) == ("chat", "Weather")
    async with database.open() as other:  # which has no tip of it in its cache
        assert (await other.user("ada").messages.append("t", turn(), create=True)).last_seq == 15
        created = await other.user("ada").threads.create("s", kind="chat", title="Weather")
    await ledger.user("ada").messages.append("u", [], create=NewThread(title="Weather", kind="chat"))
    rows = await query(database, "SELECT thread_id, user_id, rules, active_branch, kind, revision FROM threads")
    assert {row[1:] for row in rows} == {("ada", None, 0, "chat", None)}
    assert created.kind == "chat"
    branches = await query(database, "SELECT lineage, partial_seq, open_calls, absent FROM branches")
    assert set(branches) == {("[[0,1,null]]", None, None, None)}


async def test_the_thread_keeps_the_rules_that_it_was_created_with(ledger: Ledger, database: Database) -> None:
    odd = [result("no call")]
    await ledger.messages.append("t", odd, create=NewThread(rules="lenient"))
    await ledger.messages.append(
        "u", Payload([{"role": "critic", "content": "?"}], "openai-chat"), create=NewThread(rules="lenient")
    )
    async with ledger.messages.stream("v", create=NewThread(rules="lenient")) as draft:
        await draft.feed("Hm.")
    await ledger.messages.append("w", [], create=NewThread(rules="lenient"))
    async with ledger.begin() as tx:
        await tx.messages.append("x", odd, create=NewThread(rules="lenient"))
    async with database.open() as other:  # which has no tip of them in its cache
        for owner in (ledger, other):
            for thread_id in ("t", "u", "v", "w", "x"):
                await owner.messages.append(thread_id, odd)
    rows = await query(database, "SELECT DISTINCT rules FROM threads")
    assert rows == [("lenient",)]
    await ledger.messages.append("strict", [user("?")], create=True)
    await ledger.messages.append("strict", odd, create=True, rules="lenient")
    assert (await ledger.threads.get("strict")).rules is None
    with pytest.raises(RuleViolation):
        await ledger.messages.append("strict", odd, create=True)
    with pytest.raises(InvalidArgument, match="rules must be"):
        await ledger.messages.append("none", [], create=True, rules="loose")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="rules must be"):
        NewThread(rules="loose")  # type: ignore[arg-type]


async def test_without_create_a_missing_thread_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.messages.append("t", turn())
    with pytest.raises(ThreadNotFound):
        await ledger.messages.append("t", Payload([{"role": "critic", "content": "?"}], "openai-chat"))
    for wrong in ("", "k" * 513):
        with pytest.raises(LimitExceeded):
            await ledger.messages.append("t", turn(), create=NewThread(kind=wrong))
    for odd in ("yes", 1, None, {"title": "Weather"}):
        with pytest.raises(InvalidArgument, match="create must be True, False or a NewThread"):
            await ledger.messages.append("t", turn(), create=odd)  # type: ignore[arg-type]


async def test_a_new_thread_has_all_its_fields(ledger: Ledger, database: Database) -> None:
    made = NewThread(title="T", kind="k", metadata={"a": [1]}, rules="lenient", created_at=NOON)
    for number in range(2):
        await ledger.messages.append(f"t{number}", [user("?")] * number, create=made)
        thread = await ledger.threads.get(f"t{number}")
        assert (thread.title, thread.kind, thread.metadata, thread.rules) == ("T", "k", {"a": [1]}, "lenient")
        assert (thread.created_at, thread.active_at > NOON) == (NOON, True)
    with pytest.raises(InvalidArgument, match="metadata"):
        await ledger.messages.append("u", [user("?")], create=NewThread(metadata={"a": object()}))
    with pytest.raises(InvalidArgument, match="zone"):
        NewThread(created_at=NOON.replace(tzinfo=None))


async def test_a_refused_append_creates_nothing(ledger: Ledger, database: Database) -> None:
    await ledger.threads.create("s")
    await ledger.messages.append("s", turn(), run_id="run of s")
    before = await count_rows(database)
    mark = (await ledger.messages.history("s")).mark
    with pytest.raises(RuleViolation):
        await ledger.messages.append("t", [result("no call")], create=True)
    with pytest.raises(RunConflict):
        await ledger.messages.append("t", turn(), run_id="run of s", create=True)
    with pytest.raises(VersionConflict):
        await ledger.messages.append("s", turn(), branch=0, expected=0, create=True)
    with pytest.raises(InvalidArgument):
        await ledger.messages.append("t", turn(), expected=mark, create=True)
    with pytest.raises(Exception, match="has no branch 3"):
        await ledger.messages.append("t", turn(), branch=3, create=True)
    assert await count_rows(database) == before


@pytest.mark.parametrize("cached", [True, False])
async def test_a_thread_of_another_user_is_not_found(ledger: Ledger, database: Database, cached: bool) -> None:
    await ledger.user("bob").messages.append("t", turn(ids="m"), create=True)
    await ledger.threads.create("nobody's")
    async with database.open() as other:
        owner = ledger if cached else other
        for user_id in ("ada", "Bob"):
            for thread_id, messages in (("t", turn(ids="m")), ("t", turn()), ("nobody's", turn())):
                with pytest.raises(ThreadNotFound):
                    await owner.user(user_id).messages.append(thread_id, messages, create=True)
                with pytest.raises(ThreadNotFound):
                    await owner.user(user_id).messages.append(thread_id, messages, create=True)
        assert await owner.messages.append("t", turn(), create=True)  # on the tenant's ledger nobody was named


async def test_on_a_users_ledger_the_thread_is_the_users(ledger: Ledger) -> None:
    await ledger.user("ada").messages.append("t", turn(), create=True)
    assert (await ledger.threads.get("t")).user_id == "ada"
    with pytest.raises(InvalidArgument, match="user_id is another user"):
        await ledger.user("ada").user("bob").messages.append("u", turn(), create=True)
    assert await ledger.threads.find("u") is None


async def test_an_erased_thread_stays_erased(ledger: Ledger, database: Database) -> None:
    await ledger.user("ada").messages.append("t", turn(), create=True)
    await ledger.erasures.erase(("thread", "t"))
    async with database.open() as other:
        for owner in (ledger, other, ledger.user("ada")):
            with pytest.raises(Erased):
                await owner.messages.append("t", turn(), create=True)
            with pytest.raises(Erased):
                async with owner.messages.stream("t", create=True):
                    pass
    assert await ledger.threads.find("t") is None
    await ledger.messages.append("deleted", turn(), create=True)
    await ledger.threads.delete("deleted")
    assert (await ledger.messages.append("deleted", turn(), create=True)).last_seq == 5


async def test_thirty_two_tasks_on_one_new_thread_make_one_thread(ledger: Ledger, database: Database) -> None:
    async with database.open() as other:
        for round_ in range(3):
            name = f"t{round_}"
            done = await asyncio.gather(
                *(
                    owner.user("ada").messages.append(name, turn(ids=f"{place}.{number} "), create=True)
                    for number in range(16)
                    for place, owner in enumerate((ledger, other))
                )
            )
            assert sorted(one.last_seq for one in done) == list(range(5, 161, 5))
            ids = [message.message_id or "" for message in (await ledger.messages.history(name)).messages]
            turns = [ids[at : at + 5] for at in range(0, 160, 5)]
            assert all([id_[-1] for id_ in one] == list("01234") for one in turns)
            assert all(len({id_[:-1] for id_ in one}) == 1 for one in turns)
    assert [one.findings async for one in ledger.check()] == [[], [], []]
    assert (await count_rows(database))["threads"] == 3


@pytest.mark.parametrize("commits", [True, False])
async def test_an_append_waits_for_another_creation_of_its_thread(pg_database: Database, commits: bool) -> None:
    """Its statement sees the state before the other's commit, so it must look again."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with pg_database.open() as one, pg_database.open() as other:
        with contextlib.suppress(KeyError):
            async with one.begin() as tx:
                await tx.messages.append("t", turn(), create=True)
                appending = asyncio.create_task(other.messages.append("t", [user("?")], create=True))
                async with asyncio.timeout(60):
                    while not await query(pg_database, waiting):  # noqa: ASYNC110 - the server tells nobody
                        await asyncio.sleep(0.01)
                if not commits:
                    raise KeyError
        assert (await appending).last_seq == (6 if commits else 1)


async def test_a_repeat_is_a_repeat(ledger: Ledger, database: Database) -> None:
    first = await ledger.messages.append("t", [user("?")], create=True, idempotency_key="k")
    async with database.open() as other:
        for owner in (ledger, other):
            again = await owner.messages.append("t", [user("?")], create=True, idempotency_key="k")
            assert (again.replayed, again.messages) == (True, first.messages)
        with pytest.raises(IdConflict):
            await other.messages.append("t", [user("other")], create=True, idempotency_key="k")


async def test_a_draft_and_a_payload_create_it_too(ledger: Ledger) -> None:
    async with ledger.user("ada").messages.stream("t", create=NewThread(title="W", kind="chat")) as draft:
        await draft.feed("Hi")
    assert texts(await ledger.messages.history("t")) == ["Hi"]
    thread = await ledger.threads.get("t")
    assert (thread.user_id, thread.kind, thread.title) == ("ada", "chat", "W")
    await ledger.user("ada").messages.append(
        "p", Payload([{"role": "user", "content": "?"}]), create=NewThread(title="W", kind="chat")
    )
    assert (await ledger.threads.get("p")).user_id == "ada"
    with pytest.raises(Exception, match="critic"):
        await ledger.messages.append("q", Payload([{"role": "critic", "content": "?"}], "openai-chat"), create=True)
    assert await ledger.threads.find("q") is None


async def test_in_a_transaction_the_thread_commits_and_rolls_back_with_it(ledger: Ledger, database: Database) -> None:
    async with ledger.begin() as transaction:
        await as_user(transaction, "ada").messages.append("t", turn(), create=True)
        with pytest.raises(RuleViolation):
            await transaction.messages.append("refused", [result("no call")], create=True)
    with pytest.raises(ZeroDivisionError):
        async with ledger.begin() as transaction:
            await transaction.messages.append("gone", turn(), create=True)
            raise ZeroDivisionError
    assert [id_ async for id_ in iterate_ids(scope_of(ledger))] == ["t"]


async def test_words_of_a_created_thread_are_encrypted(database: Database) -> None:
    async with Ledger.open(database.url, encryption=KEYS) as ledger:
        await ledger.user("ada").messages.append("t", turn(), create=NewThread(title="Weather", kind="chat"))
        await ledger.user("ada").messages.append("empty", [], create=NewThread(title="Weather"))
        assert {thread.title for thread in (await ledger.threads.list()).items} == {"Weather"}
        assert [one.findings async for one in ledger.check()] == [[], []]
    assert all("Weather" not in row[0] for row in await query(database, "SELECT title FROM threads"))


# --- What it costs ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.mark.plain
async def test_it_costs_one_round_trip(proxy: Proxy, pg_database: Database) -> None:
    def trips() -> int:
        return proxy.round_trips

    async with Ledger.open(proxy.url) as tenant, pg_database.open() as another:
        ledger, other = tenant.user("ada"), another.user("ada")
        for number in range(3):
            await ledger.messages.append(f"before {number}", turn(), create=True, run_id=f"r{number}")
        given: dict[str, Any] = {"create": True}
        await ledger.messages.append("before 0", turn(), run_id="r0")  # every statement is prepared now
        before = trips()
        await ledger.messages.append("t", turn(), run_id="run", **given)
        assert trips() - before == 1
        for _ in range(2):  # on the cached tip
            before = trips()
            await ledger.messages.append("t", turn(), run_id="run", **given)
            assert trips() - before == 1
        await other.messages.append("s", turn(), **given)
        await other.messages.append("u", turn(), **given)
        await ledger.messages.append("u", turn(), run_id="run of u", **given)  # prepares what follows
        before = trips()
        await ledger.messages.append("s", turn(), run_id="run of s", **given)
        assert trips() - before == 2  # it looks, and writes
        for _ in range(2):  # the first time its tip is cached
            before = trips()
            with pytest.raises(ThreadNotFound):
                await tenant.user("bob").messages.append("s", turn(), run_id="run of s", create=True)
        assert trips() - before == 1


async def test_values_of_kv_are_written_with_the_thread(ledger: Ledger) -> None:
    await ledger.user("ada").messages.append("t", turn(), create=True, kv={"k": Put(1, expected=0)})
    found = await ledger.kv.get(("thread", "t"), "k")
    assert found is not None
    assert found.value == 1
    with pytest.raises(VersionConflict, check=about("value")):
        await ledger.messages.append("u", turn(), create=True, kv={"k": Put(1, expected=7)})
    assert await ledger.threads.find("u") is None
    with pytest.raises(InvalidArgument, match="create cannot be combined with reply_to"):
        await ledger.messages.append("u", turn(), create=True, reply_to=at(1))


async def test_without_keys_no_thread_of_an_encrypted_tenant_is_created(database: Database) -> None:
    async with Ledger.open(database.url, encryption=KEYS) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    async with Ledger.open(database.url) as ledger:
        for messages in (turn(), []):
            with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                await ledger.messages.append("u", messages, create=True)
        assert await ledger.threads.find("u") is None
