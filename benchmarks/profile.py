"""python -m benchmarks.profile [--only postgres|sqlite] [--page FILE]: where the time of append and history goes.

py-spy looks at the threads of a process from outside while it makes calls. A call into C is seen as the line that makes
it: waiting for the server is a line of the event loop's selector, a commit the line that sends it.
"""

from __future__ import annotations

import argparse
import asyncio
import linecache
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from tests.postgres import server

from benchmarks.machine import machine
from benchmarks.parts import write_part
from benchmarks.postgres import require_durable
from benchmarks.progress import say
from chatledger.admin import migrate

WORKS = {"append": "append of one turn", "load": "load of 1,000 messages", "last": "load of the last 50"}
SECONDS = 10
RATE = 200
LEAST = 0.01
"""Places with a smaller share are put together."""

_BEFORE = ("importlib", "_fill (", "load_threads (", "open_database (")
"""What stands in the stacks of what a process does before its calls."""
_FRAME = re.compile(r"(?P<name>.*) \((?P<file>.*):(?P<line>\d+)\)$")
_IDLE = (".get(", ".get_nowait(", ".wait(", ".acquire(")
"""What the line of a driver's thread says where it has nothing to do."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--page", type=Path, help="write the tables into this Markdown page")
    options = parser.parse_args()
    parts = [f"Measured on: {machine()}. Threads sampled {RATE} times a second, for {SECONDS} s per table."]
    if options.only != "sqlite":
        with server(durable=True) as running, running.database() as url:
            migrate(url)
            asyncio.run(require_durable(url))
            parts += [table(f"PostgreSQL, {name}", url, work) for work, name in WORKS.items()]
    if options.only != "postgres":
        with tempfile.TemporaryDirectory(prefix="chatledger-profile-") as folder:
            path = str(Path(folder) / "ledger.db")
            parts += [table(f"SQLite, {name}", path, work) for work, name in WORKS.items()]
    print("\n\n".join(parts))
    if options.page is not None:
        write_part(options.page, "profile", "\n\n".join(parts))
    return 0


def table(title: str, url: str, work: str) -> str:
    """What share of a call's time each place has, and what that is in milliseconds."""
    say(title)
    with tempfile.NamedTemporaryFile(suffix=".txt") as stacks:
        median = _record(Path(stacks.name), url, work)
        samples = list(read_samples(Path(stacks.name).read_text()))
    loop = Counter[str]()
    drivers = Counter[str]()
    for sample in samples:
        places = loop if sample.in_loop else drivers
        places[sample.place] += sample.count
    whole = sum(loop.values())
    rows = [f"**{title}: {median:.2f} ms**", "", "| in the event loop's thread | share | ms |", "| --- | --- | --- |"]
    rows += _lines(loop, whole, median)
    if drivers:
        rows += ["| *meanwhile in the driver's thread* | | |", *_lines(drivers, whole, median)]
    return "\n".join(rows)


def _record(stacks: Path, url: str, work: str) -> float:
    """The median of the calls in milliseconds."""
    how = ["--rate", str(RATE), "--idle", "--threads", "--nonblocking", "--full-filenames", "--format", "raw"]
    profiler = [str(Path(sys.executable).with_name("py-spy")), "record", *how, "--output", str(stacks), "--"]
    profiled = [sys.executable, "-m", "benchmarks.profiled", url, work, str(SECONDS)]
    done = subprocess.run([*profiler, *profiled], capture_output=True, text=True, check=False)
    found = re.search(r"^\d+\.\d+$", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"nothing was profiled: {done.stderr[-2000:]}")
    return float(found[0])


@dataclass(frozen=True, slots=True)
class Preflight:
    in_loop: bool
    place: str
    count: int


def read_samples(text: str) -> Iterator[Preflight]:
    """Those of calls: of the event loop's thread from `measured` on, of others while they work for it."""
    main = re.search(r"^thread \((\w+)\): MainThread", text, re.MULTILINE)
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        in_loop = main is not None and thread.startswith(f"thread ({main[1]})")
        if frames and (_is_call(stack) if in_loop else not _is_idle(frames[-1])):
            yield Preflight(in_loop, place(frames[-1], in_loop=in_loop), int(count))


def _is_call(stack: str) -> bool:
    """A greenlet, in which storage runs on PostgreSQL, has a stack that does not go back to `measured`."""
    if any(before in stack for before in _BEFORE):
        return False
    return "measured (" in stack or "selectors.py" in stack or "chatledger/storage" in stack or "asyncpg/" in stack


def _is_idle(frame: str) -> bool:
    found = _FRAME.match(frame)
    line = "" if found is None else linecache.getline(found["file"], int(found["line"]))
    return found is None or found["file"].endswith("threading.py") or any(word in line for word in _IDLE)


def place(frame: str, *, in_loop: bool) -> str:
    """The room that a frame is in: `chatledger.rules`, `asyncpg`, `asyncio`; or what it waits for."""
    found = _FRAME.match(frame)
    if found is None:
        return "Python"
    path = PurePath(found["file"])
    if path.name == "selectors.py":
        return "waiting for the database or its thread"
    if path.name == "sqlite_connection.py":
        return f"SQLite, called by {found['name']}"
    room = _room(path)
    if room == "asyncio":
        return "asyncio, and asyncpg's protocol in C" if in_loop else "asyncio, giving the result to the loop"
    return f"{room}: {found['name']}" if room.startswith("chatledger.storage") else room


def _room(path: PurePath) -> str:
    parts = path.parts
    if "chatledger" in parts[:-1]:
        own = [*parts[len(parts) - 1 - parts[::-1].index("chatledger") : -1], path.stem]
        return ".".join(own if own[1] == "storage" else own[:2])
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    if "benchmarks" in parts:
        return "the benchmark"
    return "asyncio" if "asyncio" in parts else "Python"


def _lines(places: Counter[str], whole: int, median: float) -> Iterator[str]:
    """The largest first. Shares are of the whole call, so a driver's thread has none where it idles."""
    small = sum(count for count in places.values() if count < LEAST * whole)
    for name, count in places.most_common():
        if count >= LEAST * whole:
            yield f"| {name} | {count / whole:.0%} | {count / whole * median:.2f} |"
    if small:
        yield f"| all else | {small / whole:.0%} | {small / whole * median:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
