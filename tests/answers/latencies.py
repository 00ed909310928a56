"""How soon an answer goes on after a kill, and how soon a stop from another process is told, on both databases.

    python -m tests.answers.latencies --rounds 10

Two processes serve. In each round this one asks six questions, kills the server that has most of the answers, waits
until the other one goes on with them, and stops them all. Exits with 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from chatledger import Ledger, TextDelta
from chatledger.admin import migrate
from chatledger.answers import Agent, Call, Turn
from tests.answers.agents import call_delta
from tests.postgres import server

LEASE = 2.0
BEAT = LEASE / 4
GOES_ON = LEASE + 1.1 * BEAT + 0.5
STOPS = 0.5
EACH = 3
"""Answers of each agent in a round."""
LONGEST = 60.0
"""Seconds for what a round waits for."""
ENOUGH = 80.0
"""Seconds after which no other round begins."""


# --- A server ---------------------------------------------------------------------------------------------------------


def say(what: str, run_id: str = "") -> None:
    print(json.dumps([what, run_id, time.time()]), flush=True)


async def stream(prompt: Any) -> AsyncIterator[TextDelta]:
    while True:
        yield TextDelta(text="word ")
        await asyncio.sleep(0.1)


async def call(prompt: Any) -> AsyncIterator[Any]:
    yield call_delta(0)


async def wait(call: Call) -> str:
    await asyncio.sleep(3600)
    return "done"


def told(agent: Agent) -> Agent:
    """Says when it begins, when a follower in its process has the end, and when it is given up."""

    async def follow(turn: Turn) -> None:
        answer = await turn.ledger.answers.get(turn.run.run_id)
        async for _ in answer.follow():
            pass
        say("told", turn.run.run_id)

    async def run(turn: Turn) -> None:
        say("begun", turn.run.run_id)
        following.add(task := asyncio.create_task(follow(turn)))
        task.add_done_callback(following.discard)
        try:
            await agent(turn)
        finally:
            say("left", turn.run.run_id)

    following: set[asyncio.Task[None]] = set()
    return run


async def streaming(turn: Turn) -> None:
    await turn.ask(stream)


async def calling(turn: Turn) -> None:
    await turn.ask(call)
    await turn.call_tools(wait)


AGENTS = {"streaming": told(streaming), "calling": told(calling)}


async def serve(url: str) -> None:
    async with Ledger.open(url) as ledger, ledger.answers.serve(AGENTS, lease=LEASE):
        say("ready")
        await asyncio.sleep(3600)


# --- The client -------------------------------------------------------------------------------------------------------


@dataclass
class Seconds:
    """The seconds that `measure` took of each answer."""

    goes_on: list[float] = field(default_factory=list)
    """From the kill until the agent begins in the other process."""
    stop: list[float] = field(default_factory=list)
    """The call of `stop`."""
    told: list[float] = field(default_factory=list)
    """From the call of `stop` until a follower in the serving process has the end."""
    left: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in AGENTS})
    """From the call of `stop` until the agent is cancelled, by its name."""


@dataclass(eq=False)
class ServingProcess:
    """A server, and when it said what of which answer."""

    process: asyncio.subprocess.Process
    said: dict[tuple[str, str], float] = field(default_factory=dict)
    listening: asyncio.Task[None] = field(init=False)

    @classmethod
    async def begin(cls, url: str) -> ServingProcess:
        command = (sys.executable, "-m", "tests.answers.latencies", "--serve", url)
        one = cls(await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE))
        one.listening = asyncio.create_task(one._listen())
        await until(lambda: ("ready", "") in one.said)
        return one

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            what, run_id, at = json.loads(line)
            self.said[what, run_id] = at

    async def kill(self) -> float:
        """When."""
        at = time.time()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self.listening
        return at


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST):
        while not reached():  # noqa: ASYNC110 - the lines of several processes
            await asyncio.sleep(0.01)


async def measure(url: str, rounds: int) -> Seconds:
    seconds, enough = Seconds(), time.monotonic() + ENOUGH
    servers = [await ServingProcess.begin(url), await ServingProcess.begin(url)]
    try:
        async with Ledger.open(url) as ledger:
            for number in range(rounds):
                await one_round(ledger, servers, f"round {number}", seconds)
                if time.monotonic() > enough:
                    break
                servers[0] = await ServingProcess.begin(url)
    finally:
        for one in servers:
            await one.kill()
    return seconds


async def one_round(ledger: Ledger, servers: list[ServingProcess], name: str, seconds: Seconds) -> None:
    """The first of the servers is dead afterwards."""
    agent_of: dict[str, str] = {}
    for agent in AGENTS:
        for number in range(EACH):
            answer = await ledger.answers.start(f"{name} {agent} {number}", "?", agent=agent, create=True)
            agent_of[answer.run.run_id] = agent

    def has(one: ServingProcess) -> set[str]:
        return {run_id for run_id in agent_of if ("begun", run_id) in one.said}

    await until(lambda: has(servers[0]) | has(servers[1]) == agent_of.keys())
    servers.sort(key=lambda one: -len(has(one)))
    dying, other = servers
    left_alone = has(dying) - has(other)
    killed = await dying.kill()
    await until(lambda: has(other) == agent_of.keys())
    seconds.goes_on += [other.said["begun", run_id] - killed for run_id in left_alone]
    await asyncio.sleep(BEAT)  # what they write first
    for run_id, agent in agent_of.items():
        began = time.time()
        await ledger.answers.stop(run_id)
        seconds.stop.append(time.time() - began)
        await until(partial({("told", run_id), ("left", run_id)}.issubset, other.said))
        seconds.told.append(other.said["told", run_id] - began)
        seconds.left[agent].append(other.said["left", run_id] - began)


# --- The figures ------------------------------------------------------------------------------------------------------


def figures(seconds: Seconds) -> Iterator[tuple[str, list[float], float | None]]:
    """Each figure with its name, its seconds, and the bound of their 95th percentile."""
    yield "a kill, until another process goes on", seconds.goes_on, GOES_ON
    yield "a stop from another process", seconds.stop, STOPS
    yield "… until a follower is told", seconds.told, None
    for agent, left in seconds.left.items():
        yield f"… until the agent is cancelled, {agent}", left, None


def run(url: str, rounds: int) -> int:
    """1 if a bound is missed."""
    migrate(url)
    began, missed = time.monotonic(), 0
    seconds = asyncio.run(measure(url, rounds))
    load = os.getloadavg()[0]
    database = "PostgreSQL" if url.startswith("postgresql") else "SQLite"
    print(f"{database}: {len(seconds.stop)} answers in {time.monotonic() - began:.0f} s, load {load:.1f}")
    for what, measured, bound in figures(seconds):
        ordered = sorted(measured)
        p50, p95 = (ordered[math.ceil(len(ordered) * share) - 1] for share in (0.5, 0.95))
        within = "" if bound is None else f", bound {bound:.2f}{'' if p95 <= bound else ': MISSED'}"
        missed |= bound is not None and p95 > bound
        print(f"  {what}: p50 {p50:.2f} s, p95 {p95:.2f}, max {ordered[-1]:.2f} of {len(ordered)}{within}", flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make latencies", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="at most, on each database")
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        asyncio.run(serve(arguments.serve))
    with tempfile.TemporaryDirectory() as folder:
        missed = run(str(Path(folder) / "answers.db"), arguments.rounds)
    with server() as running, running.database() as url:
        return missed | run(url, arguments.rounds)


if __name__ == "__main__":
    sys.exit(main())
