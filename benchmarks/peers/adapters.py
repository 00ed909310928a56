"""Our adapters beside the stores that the same frameworks ship, each called as its framework calls it.

    make bench-adapters     runs `python -m benchmarks.peers.adapters [--only postgres|sqlite] [--quick] [--page FILE]`

A turn comes in as many calls as the framework makes of it, with ids of its own and a run of its own. The stores of a
framework and ours take turns call by call; frameworks come one after the other.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.postgres import server

from benchmarks.cases import Outcome
from benchmarks.ending import run_to_the_end
from benchmarks.machine import machine
from benchmarks.measure import Call, Rounds, Sample, race
from benchmarks.parts import write_part
from benchmarks.peers.__main__ import in_loop, parse_options
from benchmarks.peers.adk import ADK
from benchmarks.peers.agent_framework import AGENT_FRAMEWORK
from benchmarks.peers.langchain import LANGCHAIN
from benchmarks.peers.openai_agents import OPENAI_AGENTS
from benchmarks.peers.peer import Adapter, Framework, Peer
from benchmarks.postgres import require_durable
from benchmarks.progress import say
from benchmarks.report import Row, Target, as_markdown, as_text, milliseconds, sample_rows, show_ratio
from benchmarks.turns import MESSAGES, turns

FRAMEWORKS: Sequence[Framework] = (OPENAI_AGENTS, ADK, LANGCHAIN, AGENT_FRAMEWORK)
PACKAGES = ("openai-agents", "google-adk", "langchain-core", "langchain-community", "agent-framework-core")
LAST = 50
AHEAD = Target(1, at_least=True)
"""Of an append: the framework's own store takes at least as long as ours."""
LOAD = Target(1.5)
"""Of a load: ours to the framework's parsing and our history together."""


@dataclass(frozen=True, slots=True)
class Extent:
    long: int
    warm: int
    appends: Rounds
    loads: Rounds


FULL = Extent(
    long=1_000,
    warm=100,
    appends=Rounds(count=100, seconds=20, warm_up=5),
    loads=Rounds(count=40, seconds=15, warm_up=3, alone=True),
)
QUICK = Extent(
    long=100,
    warm=20,
    appends=Rounds(count=10, seconds=10, warm_up=1),
    loads=Rounds(count=10, seconds=10, warm_up=1, alone=True),
)


def main() -> int:
    options = parse_options("python -m benchmarks.peers.adapters", "our adapters beside the frameworks' own stores")
    warnings.simplefilter("ignore")  # theirs, about themselves
    logging.disable(logging.WARNING)
    where = f"{machine()}; " + ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(where, flush=True)
    parts = [f"Measured on: {where}."]
    for outcome in _run(QUICK if options.quick else FULL, options.only):
        print(as_text(outcome.title, outcome.rows), flush=True)
        parts += [f"### {outcome.title}", as_markdown(outcome.rows)]
    if options.page is not None:
        write_part(options.page, "adapters", "\n\n".join(parts))
    return 0


def _run(extent: Extent, only: str | None) -> Iterator[Outcome]:
    if only != "sqlite":
        with server(durable=True) as running:
            title = f"PostgreSQL {asyncio.run(require_durable(running.url))}"
            for framework in FRAMEWORKS:
                with ExitStack() as stack:
                    opened = [
                        (kind, stack.enter_context(running.database()))
                        for kind in [framework.ours, *framework.postgres]
                    ]
                    yield _measured(framework, title, opened, extent)
    if only != "postgres":
        for framework in FRAMEWORKS:
            with tempfile.TemporaryDirectory(prefix="chatledger-peers-") as folder:
                kinds = enumerate([framework.ours, *framework.sqlite])
                opened = [(kind, str(Path(folder) / f"peer{number}.db")) for number, kind in kinds]
                yield _measured(framework, f"SQLite {sqlite3.sqlite_version}", opened, extent)


def _measured(framework: Framework, title: str, opened: Sequence[tuple[type[Peer], str]], extent: Extent) -> Outcome:
    outcome = Outcome(f"{framework.name}, {title}")
    say(outcome.title)
    outcome.rows += asyncio.run(in_loop(lambda: _race(framework, opened, extent)))
    return outcome


async def _race(framework: Framework, opened: Sequence[tuple[type[Peer], str]], extent: Extent) -> list[Row]:
    async with AsyncExitStack() as stack:
        peers: list[Peer] = []
        for kind, url in opened:
            peers.append(await kind.open(url))
            stack.push_async_callback(peers[-1].close)
        rows = await _first_appends(framework, peers, extent)
        rows += await _appends(framework, peers, extent)
        return rows + await _loads(framework, peers, extent)


# --- Appends ----------------------------------------------------------------------------------------------------------


async def _first_appends(framework: Framework, peers: Sequence[Peer], extent: Extent) -> list[Row]:
    """The first call of a turn, in a conversation that the store does not know yet."""
    waiting: dict[str, Any] = {}

    def prepare(peer: Peer) -> Call:
        async def call(number: int) -> None:
            thread = None if framework.begins else await peer.new_thread()
            waiting[peer.name] = (thread, framework.calls(_turn(number))[0])

        return call

    def append(peer: Peer) -> Call:
        async def call(_number: int) -> None:
            thread, ready = waiting[peer.name]
            await peer.append(await peer.new_thread() if framework.begins else thread, ready)

        return call

    samples = await race(_each(peers, append), extent.appends, prepare=_each(peers, prepare))
    return _ahead("create and append" if framework.begins else "first append", samples, peers)


async def _appends(framework: Framework, peers: Sequence[Peer], extent: Extent) -> list[Row]:
    waiting: dict[str, list[list[Any]]] = {}
    threads = {peer.name: await _filled(framework, peer, extent.warm) for peer in peers}

    def prepare(peer: Peer) -> Call:
        async def call(number: int) -> None:
            waiting[peer.name] = framework.calls(_turn(number))

        return call

    def append(peer: Peer) -> Call:
        async def call(_number: int) -> None:
            for ready in waiting[peer.name]:
                await peer.append(threads[peer.name], ready)

        return call

    samples = await race(_each(peers, append), extent.appends, prepare=_each(peers, prepare))
    calls = len(framework.calls(_turn(0)))
    return _ahead(f"turn at {extent.warm}, {calls} {'call' if calls == 1 else 'calls'}", samples, peers)


def _ahead(case: str, samples: dict[str, Sample], peers: Sequence[Peer]) -> list[Row]:
    ours, *theirs = (peer.name for peer in peers)
    return sample_rows(case, samples, ours, dict.fromkeys(theirs, AHEAD))


# --- Loads ------------------------------------------------------------------------------------------------------------

PARSING, HISTORY = "its messages parsed from JSON", "ledger.messages.history"


async def _loads(framework: Framework, peers: Sequence[Peer], extent: Extent) -> list[Row]:
    threads = {peer.name: await _filled(framework, peer, extent.long) for peer in peers}
    ours: Any = peers[0]
    own: Adapter = ours
    texts = [framework.dump(one) for one in await own.load(threads[own.name])]

    async def parse(_number: int) -> None:
        framework.parse(texts)

    async def history(_number: int) -> None:
        await own.history(threads[own.name])

    def load(peer: Peer) -> Call:
        return lambda _number: peer.load(threads[peer.name])

    def last(peer: Peer) -> Call:
        return lambda _number: peer.last(threads[peer.name], LAST)

    case = f"load {extent.long:,}"
    samples = await race({**_each(peers, load), PARSING: parse, HISTORY: history}, extent.loads)
    floor = Sample([sum(pair) for pair in zip(samples[PARSING].times, samples[HISTORY].times, strict=True)])
    ratio = samples[own.name].ratio(floor)
    rows = sample_rows(case, samples, own.name)
    rows.append(
        Row(case, "ours to both together", milliseconds(floor.median), "", "", show_ratio(ratio), LOAD, ratio.value)
    )
    able = [peer for peer in peers if peer.loads_last]
    case = f"last {LAST} of {extent.long:,}"
    rows += sample_rows(case, await race(_each(able, last), extent.loads), own.name)
    return rows + [Row(case, peer.name, "cannot") for peer in peers if not peer.loads_last]


# --- Conversations ----------------------------------------------------------------------------------------------------


async def _filled(framework: Framework, peer: Peer, messages: int) -> Any:
    thread = await peer.new_thread()
    for number in range(messages // MESSAGES):
        for ready in framework.calls(_turn(number)):
            await peer.append(thread, ready)
    loaded, expected = len(await peer.load(thread)), messages // MESSAGES * peer.items
    if loaded != expected:
        raise RuntimeError(f"{peer.name} loaded {loaded} items, not {expected}")
    return thread


def _turn(number: int) -> Any:
    stock = turns()
    return stock[number % len(stock)]


def _each(peers: Sequence[Peer], make: Callable[[Peer], Call]) -> dict[str, Call]:
    return {peer.name: make(peer) for peer in peers}


if __name__ == "__main__":
    run_to_the_end(main)
