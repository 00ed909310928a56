"""The calls of a chat service beside its plain append and its plain read: a thread made by its first append, values
kept with a turn, popped turns, a history in a format, an append that is seen by OpenTelemetry, the list of a user's
threads with previews, and writers that send hints to followers.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.cases import WRITERS, Extent
from benchmarks.measure import Call, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, sample_rows
from benchmarks.turns import turns
from chatledger import ChatMessage, Ledger, Newest, OpenTelemetry, Payload, Thread
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.repositories.bulk import load_threads, prepare_thread

PLAIN = "append"
KEPT = 1_000
POPPED = 600
THREADS = 2_000
PAGE = 50
RESPONSES = "openai-responses"


async def service_rows(url: str, extent: Extent) -> list[Row]:
    say("the calls of a service")
    async with Ledger.open(url) as ledger:
        return [
            *await _telemetry_rows(url, ledger, extent),
            *await _append_rows(ledger, extent),
            *await _pop_rows(ledger, extent),
            *await _format_rows(ledger, extent),
            *await _list_rows(ledger, extent),
            *await _hint_rows(url, ledger, extent),
        ]


async def _append_rows(ledger: Ledger, extent: Extent) -> list[Row]:
    warm, state = (await ledger.threads.create()).thread_id, (await ledger.threads.create()).thread_id
    new = count()

    async def plain(number: int) -> None:
        await ledger.messages.append(warm, _turn(number))

    async def create(number: int) -> None:
        await ledger.user("ada").messages.append(f"new {next(new)}", _turn(number), create=True)

    async def create_apart(number: int) -> None:
        thread = await ledger.user("ada").threads.create()
        await ledger.messages.append(thread.thread_id, _turn(number))

    async def keep(number: int) -> None:
        await ledger.messages.append(state, _turn(number), kv={"step": number, "topic": {"name": "weather"}})

    calls: dict[str, Call] = {
        PLAIN: plain,
        "append(create=True)": create,
        "threads.create, append": create_apart,
        "append(kv={2 values})": keep,
    }
    targets = {"append(create=True)": Target(1.15), "append(kv={2 values})": Target(1.2)}
    return sample_rows("a turn of 2, chatledger", await race(calls, extent.rounds), PLAIN, targets)


async def _telemetry_rows(url: str, ledger: Ledger, extent: Extent) -> list[Row]:
    """A plain append with a span and metrics, by the SDK as an application sets it up: a thread of its own exports."""
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider([InMemoryMetricReader()]))
    async with Ledger.open(url, telemetry=telemetry) as seen, Ledger.open(url, slow_call=60) as timed:
        names = {PLAIN: ledger, "append, telemetry=OpenTelemetry()": seen, "append, slow_call=60": timed}
        threads = {name: (await owner.threads.create()).thread_id for name, owner in names.items()}

        def append(name: str) -> Call:
            async def call(number: int) -> None:
                await names[name].messages.append(threads[name], _turn(number))

            return call

        times = await race({name: append(name) for name in names}, extent.rounds)
    tracers.shutdown()
    limits = {name: Target(1.05) for name in names if name != PLAIN}
    return sample_rows("a turn of 2, seen", times, PLAIN, limits)


def _turn(number: int) -> list[ChatMessage]:
    stock = turns()
    models = stock[number % len(stock)].models
    return [models[0], models[-1]]


async def _pop_rows(ledger: Ledger, extent: Extent) -> list[Row]:
    """Each popped turn came after one that stayed."""
    whole, holes = "never popped", f"{POPPED} turns popped"
    threads = {name: await _write(ledger, pops=name == holes) for name in (whole, holes)}
    rows: list[Row] = []
    for case, last, rounds in (("load", None, extent.loads), ("last 10", 10, extent.rounds)):
        calls = {name: _load(ledger, thread, last) for name, thread in threads.items()}
        rows += sample_rows(f"{case} of {KEPT:,}, chatledger", await race(calls, rounds), whole, {holes: Target(1.5)})
    return rows


async def _format_rows(ledger: Ledger, extent: Extent) -> list[Row]:
    """A history in its own format, beside its messages. Encoding may take 1.3 times as long as reading."""
    chat, responses = [(await ledger.threads.create()).thread_id for _ in range(2)]
    for number in range(KEPT // 2):
        await ledger.messages.append(chat, _turn(number))
    written = (await ledger.messages.history(chat)).encode(RESPONSES).payload
    await ledger.messages.append(responses, Payload(written, RESPONSES))

    async def read(_number: int) -> None:
        await ledger.messages.history(responses)

    async def encode(_number: int) -> None:
        (await ledger.messages.history(responses)).encode(RESPONSES)

    calls: dict[str, Call] = {"history": read, f"history as {RESPONSES}": encode}
    times = await race(calls, extent.loads)
    return sample_rows(f"load of {KEPT:,}, chatledger", times, "history", {f"history as {RESPONSES}": Target(2.3)})


async def _write(ledger: Ledger, *, pops: bool) -> str:
    thread = (await ledger.threads.create(rules="lenient")).thread_id
    for number in range(KEPT // 2):
        await ledger.messages.append(thread, _plain_turn(number))
        if pops and number < POPPED:
            await ledger.messages.append(thread, _plain_turn(number))
            await ledger.messages.pop(thread)
            await ledger.messages.pop(thread)
    for number in range(KEPT // 2, POPPED if pops else 0):
        await ledger.messages.append(thread, _plain_turn(number))
        await rewind_to(
            scope_of(ledger), thread, to=(await ledger.messages.history(thread, Newest(3))).messages[0].seq or 0
        )
    assert len((await ledger.messages.history(thread)).messages) == KEPT
    return thread


def _plain_turn(number: int) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=f"Question {number}"), ChatMessage(role="assistant", content="An answer.")]


def _load(ledger: Ledger, thread: str, last: int | None) -> Call:
    async def load(_number: int) -> None:
        await ledger.messages.history(thread, None if last is None else Newest(last))

    return load


async def _list_rows(ledger: Ledger, extent: Extent) -> list[Row]:
    """A page of a user's threads, beside the same page of threads that have no messages and so no previews."""
    empty, filled = "threads without messages", "threads with previews"
    owners = {empty: "list-empty", filled: "list-filled"}
    for name, owner in owners.items():
        await _fill(ledger, owner, turns_each=0 if name == empty else 1)

    def page_of(owner: str) -> Call:
        async def read(_number: int) -> None:
            page = await ledger.user(owner).threads.list(limit=PAGE)
            assert len(page.items) == PAGE

        return read

    calls = {name: page_of(owner) for name, owner in owners.items()}
    case = f"{PAGE} of {THREADS:,} threads, chatledger"
    return sample_rows(case, await race(calls, extent.rounds), empty, {filled: Target(2.5)})


async def _fill(ledger: Ledger, owner: str, *, turns_each: int) -> None:
    now = datetime.now(UTC)
    for begin in range(0, THREADS, 500):
        batch = [
            prepare_thread(scope_of(ledger), _thread(owner, number, now), _turn(number) if turns_each else [])
            for number in range(begin, begin + 500)
        ]
        await load_threads(scope_of(ledger), batch)


def _thread(owner: str, number: int, now: datetime) -> Thread:
    moment = now - timedelta(seconds=number)
    return Thread(thread_id=f"{owner} {number}", user_id=owner, created_at=moment, active_at=moment)


async def _hint_rows(url: str, ledger: Ledger, extent: Extent) -> list[Row]:
    """A turn of each of so many writers at once, each on a thread of its own."""
    without, hints = "without hints", "notify=True"
    async with Ledger.open(url, notify=True) as hinting:
        calls = {name: await _crowd(one) for name, one in ((without, ledger), (hints, hinting))}
        case = f"{WRITERS} writers, a turn of each, chatledger"
        return sample_rows(case, await race(calls, extent.rounds), without, {hints: Target(1.05)})


async def _crowd(ledger: Ledger) -> Call:
    threads = [(await ledger.threads.create()).thread_id for _ in range(WRITERS)]

    async def write(number: int) -> None:
        await asyncio.gather(*(ledger.messages.append(thread, _plain_turn(number)) for thread in threads))

    return write
