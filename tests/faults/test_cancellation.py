"""Cancelled and timed out at every await: nothing is stored in half, nothing stays open, and the ledger goes on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import itertools
import random
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from chatledger import Feedback, Ledger, Pace, Payload, StorageError, Turns
from chatledger.errors import DraftLive
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.repositories.branches import BranchRepository
from chatledger.repositories.drafts import DraftRepository
from chatledger.repositories.erasures import ErasureRepository
from chatledger.repositories.feedback import FeedbackRepository
from chatledger.repositories.kv import KvRepository
from chatledger.repositories.messages import MessageRepository
from chatledger.repositories.runs import RunRepository
from chatledger.repositories.threads import ThreadRepository
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.branches import advance
from chatledger.storage.repositories.outputs import (
    add_outputs,
    list_agents,
    list_outputs,
    replace_agents,
)
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.awaits import Moment, cancelled_at, timed_out_at
from tests.faults.batches import batch
from tests.faults.checker import Figures, verdict
from tests.faults.connections import busy
from tests.faults.proxy import Proxy, proxied
from tests.faults.recording import Recorder, Recording
from tests.storage.raw import query

THREAD = "t"

Call = Callable[[Recorder, str], Awaitable[None]]
Stop = Callable[[Callable[[], Awaitable[object]], int, Moment], Awaitable[tuple[bool, bool]]]


async def assert_clean(database: Database, ledger: Ledger) -> None:
    """No connection is checked out, none is inside a transaction, and no lock is held."""
    if database.kind == "sqlite":
        await asyncio.wait_for(ledger.threads.update(THREAD, title="free"), 10)
        return
    assert busy(ledger) == 0
    others = (
        "SELECT state, query FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'chatledger' AND state <> 'idle'"
    )
    for _ in range(200):  # a server takes a moment to see that its client is gone
        left = await query(database, others)
        if not left:
            break
        await asyncio.sleep(0.01)
    assert left == []


async def append(recorder: Recorder, name: str) -> None:
    await recorder.append(name, THREAD)


async def history(recorder: Recorder, _: str) -> None:
    await recorder.read(THREAD)


async def window(recorder: Recorder, _: str) -> None:
    await recorder.read(THREAD, last=20)


async def transaction(recorder: Recorder, name: str) -> None:
    """Two appends with one commit: both or neither."""
    recording = Recording()
    done = False
    try:
        async with recorder._ledger.begin() as tx:
            inside = Recorder(tx, recording)  # type: ignore[arg-type]
            await inside.append(f"{name}a", THREAD)
            await inside.append(f"{name}b", THREAD)
        done = True
    finally:
        for one in recording.appends.values():
            one.outcome = "acknowledged" if done else "open"
        recorder._recording.appends |= recording.appends


async def rename(recorder: Recorder, name: str) -> None:
    await recorder._ledger.threads.update(THREAD, title=name, rules="strict")


CALLS = (append, history, window, transaction, rename)


# The other public calls; the long form stops these too. None of them writes to the thread that is checked.


async def create(recorder: Recorder, name: str) -> None:
    await recorder._ledger.threads.create(f"{name} {uuid4()}", title=name)


async def look(recorder: Recorder, _: str) -> None:
    ledger = recorder._ledger
    assert await ledger.threads.get(THREAD) == await ledger.threads.find(THREAD)
    await ledger.threads.list()
    await findings_of(ledger, THREAD)
    await ledger.messages.get(THREAD, "first/0")
    assert [message async for message in ledger.messages.iterate(THREAD)]


async def delete(recorder: Recorder, name: str) -> None:
    thread = f"{name} {uuid4()}"
    await recorder._ledger.threads.create(thread)
    await recorder._ledger.messages.append(thread, turn())
    await recorder._ledger.threads.delete(thread)


async def fork(recorder: Recorder, _: str) -> None:
    stored = (await recorder._ledger.messages.history(THREAD)).messages
    await recorder._ledger.branches.fork(THREAD, stored[len(batch("first")) - 1], activate=False)
    await recorder._ledger.branches.list(THREAD)
    await recorder._ledger.branches.activate(THREAD, 0)


async def run(recorder: Recorder, name: str) -> None:
    started = await recorder._ledger.runs.start(THREAD, run_id=f"{name} {uuid4()}", agent="a")
    await recorder._ledger.feedback.record(Feedback(run_id=started.run_id, key="stars", score=1))
    await recorder._ledger.runs.finish(started.run_id, status="completed")
    await recorder._ledger.runs.list(thread_id=THREAD)
    await recorder._ledger.feedback.list(events=True, run_id=started.run_id)
    for said in await recorder._ledger.feedback.list(run_id=started.run_id):
        await recorder._ledger.feedback.remove(said.feedback_id or "")
    await recorder._ledger.runs.usage(by="day")
    await recorder._ledger.feedback.summary()
    await recorder._ledger.feedback.compare("stars")


async def close(recorder: Recorder, _: str) -> None:
    await recorder._ledger.messages.close_open_calls(THREAD)


async def sync(recorder: Recorder, name: str) -> None:
    thread = f"{name} {uuid4()}"
    await recorder._ledger.threads.create(thread)
    await recorder._ledger.messages.sync(thread, turn())


async def converted(recorder: Recorder, name: str) -> None:
    thread = f"{name} {uuid4()}"
    await recorder._ledger.threads.create(thread)
    await recorder._ledger.messages.append(thread, Payload([{"role": "user", "content": "?"}], "openai-chat"))
    await recorder._ledger.messages.prompt(thread, "anthropic")


async def stream(recorder: Recorder, name: str) -> None:
    """Whatever it is stopped at, the thread takes the next message."""
    thread = f"{name} {uuid4()}"
    await recorder._ledger.threads.create(thread)
    try:
        async with recorder._ledger.messages.stream(thread, pace=Pace(interval=0.01, lease=0.02)) as draft:
            await draft.feed("So")
            await draft.flush()
            await draft.complete()
    finally:
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(DraftLive):  # its lease is not over yet
                    await recorder._ledger.messages.append(thread, [user("next")])
                    break


async def partials(recorder: Recorder, name: str) -> None:
    """Of a tenant of its own, which has nothing to do of what a call that was stopped has left."""
    own = recorder._ledger.tenant(uuid4().hex)
    await own.threads.create(name)
    await own.messages.append(name, [assistant("So", state="partial")])
    assert await own.drafts.list()
    for left in await own.drafts.list(abandoned_for=0):
        await own.drafts.interrupt(left)


async def erase(recorder: Recorder, name: str) -> None:
    """A thread and a user, with the scores of a run kept."""
    user_id = f"{name} {uuid4()}"
    for thread in (f"{user_id}a", f"{user_id}b"):
        await recorder._ledger.user(user_id).threads.create(thread)
        await recorder._ledger.messages.append(thread, turn(), run_id=f"run of {thread}")
    await recorder._ledger.feedback.record(Feedback(run_id=f"run of {user_id}a", key="stars", score=1))
    await erase_at(scope_of(recorder._ledger), f"{user_id}a", 1)
    await recorder._ledger.erasures.erase(("thread", f"{user_id}a"), keep_scores=True)
    await recorder._ledger.erasures.erase(("user", user_id))
    assert await recorder._ledger.erasures.find(("thread", f"{user_id}a"))
    assert await recorder._ledger.erasures.find(("user", user_id))
    await recorder._ledger.erasures.list()


async def retain(recorder: Recorder, name: str) -> None:
    """As above."""
    own, long_ago = recorder._ledger.tenant(uuid4().hex), datetime(2000, 1, 1, tzinfo=UTC)
    await own.threads.create(name, created_at=long_ago)
    assert (await own.threads.delete_inactive(older_than=long_ago + timedelta(1))).rows["threads"] == 1


async def additions(recorder: Recorder, _: str) -> None:
    """Agents and outputs of the thread, and the mark that MessageFile saves by."""
    agent = ThreadAgent(name="a", definition={})
    stored = await list_agents(scope_of(recorder._ledger), THREAD)
    await replace_agents(scope_of(recorder._ledger), THREAD, [agent], stored=stored)
    output = Output(branch=0, seq=1, nonce=uuid4().hex, mime_type="text/plain", text="x")
    await add_outputs(scope_of(recorder._ledger), THREAD, [output])
    assert await list_outputs(scope_of(recorder._ledger), THREAD)
    await advance(scope_of(recorder._ledger), THREAD, (await recorder._ledger.branches.get(THREAD)).mark)


async def change(recorder: Recorder, name: str) -> None:
    """A thread of its own, whose messages are revised and removed."""
    ledger, thread = recorder._ledger, f"{name} {uuid4()}"
    await ledger.messages.append(thread, turn("c"), create=True, kv={"step": 1})
    await ledger.messages.append(thread, [user("Or so?", message_id="edited")], reply_to="c4")
    await ledger.messages.revise(thread, "edited", user("And so?"))
    await ledger.messages.remove(thread, "edited")
    assert await ledger.messages.revisions(thread, "edited")
    assert await ledger.messages.pop(thread)
    [first, *_] = (await ledger.messages.history(thread)).messages
    await ledger.messages.rewind(thread, first)
    await ledger.messages.alternatives(thread, first)
    assert await ledger.messages.find("c0")
    assert await ledger.messages.search("tokyo", thread_id=thread)
    assert await ledger.threads.search("lima")
    copied = await ledger.threads.copy(thread)
    await ledger.threads.update(copied.thread_id, archived=True)
    await ledger.threads.update(copied.thread_id, archived=False)
    assert await ledger.threads.count()


async def score(recorder: Recorder, name: str) -> None:
    thread = f"{name} {uuid4()}"
    await recorder._ledger.messages.append(thread, turn(), run_id=f"run of {thread}", create=True)
    given = await recorder._ledger.feedback.record(Feedback(run_id=f"run of {thread}", key="up", score=1))
    await recorder._ledger.feedback.remove(given.feedback_id or "")
    await recorder._ledger.feedback.list(thread_id=thread)


async def state(recorder: Recorder, _: str) -> None:
    scope = ("user", uuid4().hex)
    await recorder._ledger.kv.put(scope, "k", {"a": 1})
    await recorder._ledger.kv.put(scope, "k", {"b": 2}, merge=True)
    assert await recorder._ledger.kv.get(scope, "k")
    assert await recorder._ledger.kv.list(scope)
    assert (await recorder._ledger.kv.list_many([scope]))[scope]
    assert await recorder._ledger.kv.delete(scope, "k")


OTHERS = (
    create, look, delete, fork, run, close, sync, converted, stream, partials, erase, retain, additions, change, score,
    state,
)  # fmt: skip


def test_every_public_method_is_stopped_in_some_call() -> None:
    """By their names, in the text of the calls above."""
    words = set(re.findall(r"\w+", "".join(inspect.getsource(call) for call in (*CALLS, *OTHERS))))
    usual = (ThreadRepository, MessageRepository, BranchRepository, RunRepository, FeedbackRepository)
    others = (ErasureRepository, DraftRepository, KvRepository)
    methods = {
        name
        for repository in (*usual, *others)
        for name, _ in inspect.getmembers(repository, lambda one: inspect.iscoroutinefunction(inspect.unwrap(one)))
        if not name.startswith("_")
    }
    assert methods - words == set()


@pytest.mark.parametrize("stop", [cancelled_at, timed_out_at])
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_stopped_at_any_await_leaves_nothing_behind(database: Database, call: Call, stop: Stop) -> None:
    assert (await stop_everywhere(database, call, stop)).faults > 1


async def stop_everywhere(database: Database, call: Call, stop: Stop) -> Figures:
    recording = Recording()
    async with database.open() as ledger:
        await ledger.threads.create(THREAD)
        recorder = Recorder(ledger, recording)
        await recorder.append("first", THREAD)
        moments: tuple[Moment, ...] = ("waiting", "answered")
        for moment in moments:
            for number in itertools.count(1):
                if database.kind == "postgresql" and number % 2:
                    ledger._database._append._tips._seen.clear()
                name = f"n5 {call.__name__} {moment} {number}"
                reached, stopped = await stop(lambda: call(recorder, name), number, moment)  # noqa: B023
                if not reached:
                    break
                assert stopped
                recording.faults += 1
                await assert_clean(database, ledger)
                await recorder.append(f"after {name}", THREAD)
            assert number > 1
        both = [[name for name in stored if name.endswith(part)] for stored in [await names(ledger)] for part in "ab"]
        if call is transaction:
            halves = [[name[:-1] for name in part] for part in both]
            assert halves[0] == halves[1], "half of a cancelled transaction is stored"
        return await verdict(database, ledger, [THREAD], recording)


async def names(ledger: Ledger) -> list[str]:
    ids = [message.message_id or "" for message in (await ledger.messages.history(THREAD)).messages]
    return [id_.removesuffix("/0") for id_ in ids if id_.startswith("n5 transaction") and id_.endswith("/0")]


# --- A server that says nothing ---------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


async def hanging_append(ledger: Ledger) -> None:
    await ledger.messages.append(THREAD, [])


async def hanging_history(ledger: Ledger) -> None:
    await ledger.messages.history(THREAD)


async def hanging_transaction(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.threads.get(THREAD)


async def hanging_write(ledger: Ledger) -> None:
    await ledger.threads.update(THREAD, title="x")


def gone_off(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Calls what the loop's timers would call."""
    called: list[object] = []
    call_at = loop.call_at

    def noted(when: float, callback: Callable[..., object], *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        def note(*given: Any) -> None:
            called.append(callback)
            callback(*given)

        return call_at(when, note, *arguments, **options)

    monkeypatch.setattr(loop, "call_at", noted)
    return called


@pytest.mark.parametrize("trip", [1, 2, 3])
@pytest.mark.parametrize("call", [hanging_append, hanging_history, hanging_transaction, hanging_write])
async def test_a_time_out_fires_though_the_server_is_silent(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, call: Callable[[Ledger], Awaitable[None]], trip: int
) -> None:
    """At once: no other timer goes off before the call has ended, such as the driver's that waits for the server's
    answer to its goodbye.
    """
    async with Ledger.open(proxy.url) as ledger:
        await ledger.threads.create(THREAD)
        await call(ledger)
        proxy.cut("hang", trip)
        timers = gone_off(asyncio.get_running_loop(), monkeypatch)
        try:
            async with asyncio.timeout(0.1):
                await call(ledger)
        except TimeoutError:
            assert len(timers) == 1
        else:
            assert trip > 1  # it has fewer round trips
        proxy.spare()
        assert busy(ledger) == 0
        await ledger.threads.update(THREAD, title="y")


async def test_a_server_that_never_greets_is_a_retryable_error() -> None:
    """It takes the connection, and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel takes it, and nobody ever reads
        port = silent.getsockname()[1]
        with pytest.raises(StorageError) as caught:
            await asyncio.wait_for(Ledger.open(f"postgresql://somebody@127.0.0.1:{port}/x", timeout=0.2)._opened(), 5)
    assert caught.value.retryable


async def append_one(ledger: Ledger) -> None:
    await ledger.messages.append(THREAD, [user("x")])


async def read_turns(ledger: Ledger) -> None:
    await ledger.messages.history(THREAD, Turns(1))


async def get_thread(ledger: Ledger) -> None:
    await ledger.threads.get(THREAD)


@pytest.mark.parametrize("call", [append_one, hanging_history, read_turns, get_thread, hanging_transaction])
async def test_cancelled_calls_leave_nothing_in_the_log(
    pg_database: Database, caplog: pytest.LogCaptureFixture, call: Callable[[Ledger], Coroutine[Any, Any, None]]
) -> None:
    """asyncio reports an exception that nobody retrieves when its future is collected: also that of a connection whose
    making was cancelled.
    """
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.set_exception_handler(lambda _, context: reported.append(context))
    chance = random.Random(7)
    async with Ledger.open(pg_database.url) as ledger:
        await ledger.threads.create(THREAD, rules="lenient")
        for _ in range(60):
            calling = asyncio.create_task(call(ledger))
            await asyncio.sleep(chance.random() * 0.004)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
    await asyncio.sleep(0.05)
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []
    assert [record.getMessage() for record in caplog.records if "never retrieved" in record.getMessage()] == []
