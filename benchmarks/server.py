"""python -m benchmarks.server [--only postgres|sqlite] [--seconds N] [--clients N] [--workers N] [--pause SECONDS]

Clients append, page and list over HTTP, each on its own connection, against a real `chatledger serve`. Each client
sends its next request when it has its answer, so without a pause the server is always full, and the times say how long
the queue is: with N clients and R requests a second, a request takes N/R seconds. At the end the stored messages are
counted: each acknowledged append must be there exactly once. Linux only, for the processor times.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.postgres import server
from tests.server.conftest import Serving, serving

from benchmarks.ending import run_to_the_end
from benchmarks.http_client import Answer, Connection
from benchmarks.machine import fsync_time, machine
from benchmarks.measure import Sample
from benchmarks.progress import say
from benchmarks.report import milliseconds
from benchmarks.server_list import list_lines
from benchmarks.turns import turns
from chatledger import Ledger
from chatledger.admin import migrate

SERVER = "chatledger serve"
_TICKS = os.sysconf("SC_CLK_TCK")
LISTS = 10
"""One round in so many also lists the threads."""


@dataclass
class Load:
    """What the clients do, and what they saw."""

    clients: int
    pause: float
    end: float
    requests: int
    """They end after so many requests, or at `end`."""
    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    """The number of messages of each acknowledged append, by its key."""

    @property
    def done(self) -> int:
        return sum(map(len, self.times.values()))

    async def run(self, url: str) -> float:
        """Returns the seconds that it took."""
        start = time.perf_counter()
        await asyncio.gather(*(self._client(url, number) for number in range(self.clients)))
        return time.perf_counter() - start

    async def _client(self, url: str, number: int) -> None:
        connection, path = Connection(url), f"/v1/threads/load-{number}/messages"
        await asyncio.sleep(self.pause * number / self.clients)  # not all in the same moment
        for round_ in itertools.count():
            if self.done >= self.requests or time.monotonic() > self.end:
                break
            await self._append(connection, path, f"{number}.{round_}")
            newest = await self._measure("page, newest 50", connection, f"GET {path}")
            before = None if newest is None else newest.json["previous_cursor"]
            if before is not None:
                await self._measure("page before it", connection, f"GET {path}?before={before}")
            if round_ % LISTS == 0:
                await self._measure("list of 50 threads", connection, "GET /v1/threads")
            await asyncio.sleep(self.pause)
        connection.close()

    async def _append(self, connection: Connection, path: str, key: str) -> None:
        """A turn of a question and an answer. An answer that is lost, or that asks for it, sends it again."""
        first, *_, last = turns()[zlib.crc32(key.encode()) % len(turns())].models
        messages = [{"role": one.role, "content": one.content, "custom_data": {"key": key}} for one in (first, last)]
        body = {"messages": messages, "create": True}
        while time.monotonic() < self.end + 10:
            answer = await self._measure("append of 2 messages", connection, f"POST {path}", body, key)
            if answer is not None:
                self.acknowledged[key] = len(messages)
                return

    async def _measure(
        self, what: str, connection: Connection, line: str, body: object = None, key: str = ""
    ) -> Answer | None:
        """The answer; None and a failure counted, if it is an error."""
        method, path = line.split(" ")
        start = time.perf_counter()
        try:
            answer = await (connection.get(path) if method == "GET" else connection.post(path, body, key=key))
        except (OSError, EOFError) as error:
            self.failures[f"{what}: {type(error).__name__}"] += 1
            return None
        if answer.status >= 400:
            self.failures[f"{what}: {answer.status}"] += 1
            return None
        self.times[what].append(time.perf_counter() - start)
        return answer


def measure(url: str, options: argparse.Namespace) -> list[tuple[str, str]]:
    with serving(url, "--workers", str(options.workers)) as running:
        _wait_for_workers(running, options.workers)
        load = Load(options.clients, options.pause, time.monotonic() + options.seconds, options.requests)
        say(f"{options.clients} clients")
        used = Processors(running)
        seconds = asyncio.run(load.run(running.url))
        cores = used.since()
        say("counting what is stored")
        asyncio.run(check(url, load))
        lines = [("all requests", f"{load.done / seconds:,.0f}/s")]
        lines += [(what, timed(times, len(times) / seconds)) for what, times in sorted(load.times.items())]
        lines += [("failed", f"{count:,} {what}") for what, count in load.failures.items()] or [("failed", "0")]
        lines += [("cores in use", ", ".join(f"{who} {share:.2f}" for who, share in cores.items()))]
        lines += [("processor time of the server", f"{cores[SERVER] / load.done * seconds * 1e3:.2f} ms a request")]
        return [*lines, ("appends stored exactly once", f"all {len(load.acknowledged):,}")]


def _wait_for_workers(running: Serving, workers: int) -> None:
    """The clients keep their connections, so a worker that starts later than they would have none."""
    assert running.process.stderr is not None
    started = 0 if workers > 1 else 1  # one alone says that it listens only when it has started
    while started < workers:
        started += "startup complete" in running.process.stderr.readline()


def timed(times: Sequence[float], rate: float) -> str:
    sample = Sample(times)
    return f"{rate:,.0f}/s, p50 {milliseconds(sample.median)}, p99 {milliseconds(sample.percentile(99))}"


async def check(url: str, load: Load) -> None:
    """Each acknowledged append is stored exactly once, and whole."""
    stored: Counter[str] = Counter()
    async with Ledger.open(url) as ledger:
        for number in range(load.clients):
            async for message in ledger.messages.iterate(f"load-{number}"):
                assert message.custom_data is not None
                stored[message.custom_data["key"]] += 1
    wrong = {key: stored[key] for key, count in load.acknowledged.items() if stored[key] != count}
    wrong |= {key: count for key, count in stored.items() if count != 2}
    assert not wrong, f"stored so many messages: {wrong}"


class Processors:
    """The processor time of the clients, of the server, and of all else on the machine, such as PostgreSQL."""

    def __init__(self, running: Serving) -> None:
        self._running = running
        self._start, self._clock = self._read(), time.perf_counter()

    def since(self) -> dict[str, float]:
        """The number of cores that each kept busy."""
        seconds = time.perf_counter() - self._clock
        return {who: (now - self._start[who]) / seconds for who, now in self._read().items()}

    def _read(self) -> dict[str, float]:
        parent = self._running.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        own, served = _seconds("self"), sum(map(_seconds, (str(parent), *children)))
        user, nice, system, _idle, _wait, *others = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
        busy = (user + nice + system + sum(others[:3])) / _TICKS
        return {"clients": own, SERVER: served, "all else": busy - own - served}


def _seconds(pid: str) -> float:
    """The processor time of a process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


@contextmanager
def _database(only: str) -> Iterator[str]:
    with ExitStack() as stack:
        if only == "postgres":
            url = stack.enter_context(stack.enter_context(server(durable=True)).database())
        else:
            url = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "load.db")
        migrate(url)
        yield url


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description="chatledger serve under load")
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--seconds", type=float, default=60, help="how long the clients work")
    parser.add_argument("--requests", type=int, default=200_000, help="they end after so many requests")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0, help="seconds between two rounds of a client")
    options = parser.parse_args()
    print(machine(), flush=True)
    for name, title in (("postgres", "PostgreSQL"), ("sqlite", "SQLite")):
        if options.only in (None, name):
            with _database(name) as url:
                before = fsync_time()
                lines = [*measure(url, options), *list_lines(url)]
                after = fsync_time()
            print(f"\n{title}, {options.clients} clients, {options.workers} workers, {options.seconds:g} s")
            print(f"(fsync of a page {before * 1e6:,.0f} µs before and {after * 1e6:,.0f} µs after)")
            print("\n".join(f"  {what:<34}{figures}" for what, figures in lines), flush=True)
    return 0


if __name__ == "__main__":
    run_to_the_end(main)
