"""Clients that get in each other's way, in every order of their steps.

Two ledgers of one database (two processes, as far as the library knows) take turns call by call in every order that
there is; and on PostgreSQL one call is halted at each of its awaits while another runs, as far as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from chatledger import Feedback, Ledger, NotFound, ThreadNotFound
from chatledger.admin import migrate
from chatledger.errors import IdConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.checks import findings_of
from tests.conftest import Database
from tests.faults.awaits import Interrupted
from tests.faults.batches import batch
from tests.faults.checker import Figures, verdict
from tests.faults.recording import Recorder, Recording

Step = Callable[[Ledger, str], Awaitable[object]]
"""A call in a thread."""


# --- Call by call -----------------------------------------------------------------------------------------------------


class Expected:
    """What a thread must hold after these calls, one after the other: whose memory was stale does not matter."""

    def __init__(self) -> None:
        self.exists = True
        self.paths: list[list[str]] = [[]]
        self.active = 0

    @property
    def path(self) -> list[str]:
        return self.paths[self.active]

    def append(self, name: str) -> bool:
        """Whether it is a replay; a batch that stands on another branch is a conflict."""
        if name in self.path:
            return True
        if any(name in path for path in self.paths):
            raise IdConflict("message", name, "on another branch")
        self.path.append(name)
        return False


async def append(ledger: Ledger, thread: str, expected: Expected, name: str) -> None:
    ids = [message.message_id for message in batch(name)]
    if not expected.exists:
        with pytest.raises(ThreadNotFound):
            await ledger.messages.append(thread, batch(name))
        return
    try:
        replayed = expected.append(name)
    except IdConflict:
        with pytest.raises(IdConflict):
            await ledger.messages.append(thread, batch(name))
        return
    stored = await ledger.messages.append(thread, batch(name))
    assert stored.replayed == replayed
    assert [message.message_id for message in stored.messages] == ids


async def append_new(ledger: Ledger, thread: str, expected: Expected, name: str) -> None:
    """Without ids of its own, so that its ledger trusts its memory."""
    messages = [message.model_copy(update={"message_id": None}) for message in batch(name)]
    if not expected.exists:
        with pytest.raises(ThreadNotFound):
            await ledger.messages.append(thread, messages)
        return
    await ledger.messages.append(thread, messages)
    expected.path.append(name)


async def fork(ledger: Ledger, thread: str, expected: Expected, _: str) -> None:
    """After the first batch of the active branch."""
    if not expected.exists:
        with pytest.raises(ThreadNotFound):
            await fork_at(scope_of(ledger), thread, 0)
        return
    shared = expected.path[:1]
    made = await fork_at(scope_of(ledger), thread, sum(len(batch(name)) for name in shared))
    expected.paths.append(list(shared))
    expected.active = made.branch
    assert made.branch == len(expected.paths) - 1


async def activate(ledger: Ledger, thread: str, expected: Expected, _: str) -> None:
    """The first branch."""
    if not expected.exists:
        with pytest.raises(ThreadNotFound):
            await ledger.branches.activate(thread, 0)
        return
    await ledger.branches.activate(thread, 0)
    expected.active = 0


async def delete(ledger: Ledger, thread: str, expected: Expected, _: str) -> None:
    if not expected.exists:
        with pytest.raises(ThreadNotFound):
            await ledger.threads.delete(thread)
        return
    await ledger.threads.delete(thread)
    expected.exists = False


async def create(ledger: Ledger, thread: str, expected: Expected, _: str) -> None:
    if expected.exists:
        with pytest.raises(IdConflict):
            await ledger.threads.create(thread)
        return
    await ledger.threads.create(thread)
    expected.__init__()  # type: ignore[misc]


Call = tuple[Callable[[Ledger, str, Expected, str], Awaitable[None]], str]
CLIENTS: list[tuple[list[Call], list[Call]]] = [
    (
        [(append_new, "n5 a"), (append, "n5 b"), (append, "n5 b"), (append_new, "n1 c")],
        [(append_new, "n5 x"), (fork, ""), (append_new, "n5 y")],
    ),
    (
        [(append_new, "n5 a"), (append_new, "n5 b"), (append, "n5 k")],
        [(append_new, "n5 x"), (delete, ""), (create, ""), (append, "n5 k")],
    ),
    (
        [(append_new, "n5 a"), (fork, ""), (append_new, "n5 b"), (activate, "")],
        [(append_new, "n5 x"), (append, "n5 k"), (append, "n5 k")],
    ),
]


def orders(first: Sequence[Any], second: Sequence[Any]) -> Iterator[list[tuple[int, Any]]]:
    """All ways in which two clients can take turns."""
    size = len(first) + len(second)
    for places in itertools.combinations(range(size), len(first)):
        steps = iter(first), iter(second)
        yield [(client, next(steps[client])) for client in (int(n not in places) for n in range(size))]


@pytest.mark.parametrize("clients", CLIENTS, ids=["fork", "delete", "activate"])
async def test_two_clients_in_every_order_of_their_calls(
    database: Database, clients: tuple[list[Call], list[Call]]
) -> None:
    count = 0
    async with database.open() as one, database.open() as other:
        for number, order in enumerate(orders(*clients)):
            thread, expected = f"t{number}", Expected()
            await one.threads.create(thread)
            for client, (call, name) in order:
                await call((one, other)[client], thread, expected, f"{name} {thread}")
            await assert_as_expected(one, thread, expected)
            count += 1
    assert count == 35


async def assert_as_expected(ledger: Ledger, thread: str, expected: Expected) -> None:
    if not expected.exists:
        assert await ledger.threads.find(thread) is None
        return
    for number, names in enumerate(expected.paths):
        history = (await ledger.messages.history(thread, branch=number)).messages
        wanted = [message.content for name in names for message in batch(name)]
        assert [message.content for message in history] == wanted, "the branch lacks acknowledged messages"
        assert [message.seq for message in history] == list(range(1, len(wanted) + 1))
        assert await findings_of(ledger, thread, branch=number) == []
    assert (await ledger.threads.get(thread)).active_branch == expected.active


# --- Await by await ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def watcher(pg_database: Database) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(pg_database.url, server_settings={"application_name": "watcher"})
    yield connection
    await connection.close()


_BLOCKED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'chatledger'
"""


async def halted_while(
    watcher: Any, first: Callable[[], Awaitable[object]], at: int, second: Callable[[], Awaitable[object]]
) -> tuple[bool, list[object]]:
    """Halt the first call at its await of that number, run the second until it is done or waits for the first's lock,
    and let the first go on. Whether it has such an await, and both outcomes.
    """
    gate, halted = asyncio.Event(), asyncio.Event()
    halting = Halting(first(), at, gate, halted)

    async def run() -> object:
        return await halting

    one = asyncio.ensure_future(run())
    arrived = asyncio.ensure_future(halted.wait())
    await asyncio.wait({one, arrived}, return_when=asyncio.FIRST_COMPLETED)
    arrived.cancel()
    other = asyncio.ensure_future(second())
    while not other.done() and not await watcher.fetchval(_BLOCKED):  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.001)
    gate.set()
    outcomes: list[object] = list(await asyncio.wait_for(asyncio.gather(one, other, return_exceptions=True), 20))
    return halting.reached, outcomes


class Halting(Interrupted[object]):
    """The call. It halts at one of its awaits, after the answer has come, until the gate is open."""

    def __init__(self, call: Awaitable[object], at: int, gate: asyncio.Event, halted: asyncio.Event) -> None:
        super().__init__(call, at, "waiting", lambda: None)
        self._gate = gate
        self._halted = halted

    def __await__(self) -> Any:
        inner = self._call.__await__()
        with contextlib.suppress(StopIteration):
            waits_for = next(inner)
            for number in itertools.count(1):
                error: BaseException | None = None
                answer: object = None
                try:
                    answer = yield waits_for
                except BaseException as raised:
                    error = raised
                if number == self._number:
                    self.reached = True
                    self._halted.set()
                    yield from self._gate.wait().__await__()
                try:
                    waits_for = inner.send(answer) if error is None else inner.throw(error)
                except StopIteration as end:
                    return end.value
        return None


def known(outcome: object) -> bool:
    """Its result, or what became of the thread meanwhile."""
    return not isinstance(outcome, BaseException) or isinstance(outcome, NotFound)


CALLS = (
    "append",
    "append_remembered",
    "retry",
    "fork",
    "activate",
    "delete",
    "close",
    "update",
    "start",
    "score",
    "migrate",
)


QUICK = ("append", "retry", "fork", "delete")
"""The calls that run meanwhile in the suite; in the long form every call does."""


@pytest.mark.parametrize("first", [name for name in CALLS if name != "migrate"])
async def test_a_call_halted_at_each_await_while_another_runs(pg_database: Database, watcher: Any, first: str) -> None:
    """Whatever the order, each call ends with its result, or with NotFound where the other deleted the thread; and what
    is stored passes the checker.
    """
    seconds = (*QUICK, "migrate") if first == "append" else QUICK
    assert (await halt_everywhere(pg_database, watcher, first, seconds)).faults > len(seconds)


async def halt_everywhere(database: Database, watcher: Any, first: str, seconds: Sequence[str]) -> Figures:
    figures = Figures()
    async with database.open() as one, database.open() as other:
        for second in seconds:
            for at in itertools.count(1):
                thread, recording = f"{first} {second} {at}", Recording()
                await one.threads.create(thread)
                writers = [Recorder(ledger, recording) for ledger in (one, other)]
                await writers[1].append(f"n5 old {thread}", thread)
                await writers[0].append(f"n1 old {thread}", thread)
                calls = [make(name, writers[n], thread, n, database.url) for n, name in enumerate((first, second))]
                reached, outcomes = await halted_while(watcher, calls[0], at, calls[1])
                assert all(map(known, outcomes)), (thread, outcomes)
                recording.faults += 1
                figures.add(await assert_sound(database, one, thread, recording, {first, second}))
                if not reached:
                    break
            assert at > 1
    return figures


def make(name: str, recorder: Recorder, thread: str, client: int, url: str) -> Callable[[], Awaitable[object]]:
    ledger = recorder._ledger
    shared = len(batch(f"n5 old {thread}"))

    async def one() -> object:
        if name == "append":
            return await recorder.append(f"n1 new {client} {thread}", thread, branch=0)
        if name == "append_remembered":
            messages = [message.model_copy(update={"message_id": None}) for message in batch("n5")]
            return await ledger.messages.append(thread, messages, branch=0)
        if name == "retry":
            old = batch(f"n1 old {thread}")
            return await ledger.messages.append(thread, old, branch=0, run_id=f"run of {thread}")
        if name == "fork":
            return await fork_at(scope_of(ledger), thread, shared)
        if name == "activate":
            return await ledger.branches.activate(thread, 0)
        if name == "delete":
            return await ledger.threads.delete(thread)
        if name == "close":
            return await ledger.messages.close_open_calls(thread)
        if name == "start":
            return await ledger.runs.start(thread, run_id=f"new {client} {thread}")
        if name == "score":
            return await ledger.feedback.record(Feedback(run_id=f"run of {thread}", key="stars", score=client))
        if name == "update":
            return await ledger.threads.update(thread, rules="lenient")
        return await asyncio.to_thread(migrate, url)

    return one


async def assert_sound(
    database: Database, ledger: Ledger, thread: str, recording: Recording, calls: set[str]
) -> Figures:
    figures = Figures(recording.acknowledged, recording.faults)
    if "delete" in calls:
        assert await ledger.threads.find(thread) is None
        return figures
    if "append_remembered" not in calls:  # the recorder does not know that batch
        figures = await verdict(database, ledger, [thread], recording)
    history = (await ledger.messages.history(thread, branch=0)).messages
    assert [message.seq for message in history] == list(range(1, len(history) + 1))
    assert await findings_of(ledger, thread, branch=0) == []
    return figures
