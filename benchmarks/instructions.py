"""Counts the instructions of an append and of a history with callgrind: nearly the same on any machine, at any load.

    python -m benchmarks.instructions

It runs each call some times under valgrind, ours and those of a bare driver, and prints the thousands of instructions
of one. It fails if a ratio is beyond its budget in `instructions.toml`. Needs valgrind, which Debian and others ship.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from tests.postgres import server

from benchmarks.bare_postgres import OneStatement
from benchmarks.bare_sqlite import OneHop
from benchmarks.ours import Chatledger
from benchmarks.turns import turns, with_own_ids
from chatledger import Newest
from chatledger.admin import migrate
from chatledger.ids import new_id
from chatledger.rules import Tip
from chatledger.storage.append.attempt import appended, plan_on_cached_tip, preflight_after
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import Terms, make_request
from chatledger.storage.append.write import Written, one_statement
from chatledger.storage.rows.encryption import Tenant

CALLS = 40
"""Measured calls of a stage. Twice as many change the figure of one call by less than a fifth of a percent."""
WARM = 12
"""Calls before them: they compile statements and fill caches."""
BUDGET = Path(__file__).with_suffix(".toml")
STAGES = ("bare", "bare with a run", "append", "append with own ids and a run", "history of 50")
PARTS = ("request", "judging and plan", "statement", "result")
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)

Stages = dict[str, Callable[[int], Awaitable[object]]]


# --- The process under valgrind ---------------------------------------------------------------------------------------


async def work(kind: str, url: str) -> None:
    bare = await (OneHop.open(url) if kind == "sqlite" else OneStatement.open(url))
    ours = await Chatledger.open(url)
    for thread in ("bare", "ours", "own"):
        await ours.ledger.threads.create(thread)
    stages = stages_of(ours, bare) | (parts() if kind == "postgresql" else {})
    for name, stage in stages.items():
        for number in range(WARM):
            await stage(number)
        gc.collect()
        gc.disable()
        tell(f"begin {name}")
        for number in range(WARM, WARM + CALLS):
            await stage(number)
        tell(f"end {name}")
        gc.enable()
    await ours.close()
    await bare.close()


def stages_of(ours: Chatledger, bare: Any) -> Stages:
    given = turns()
    named = [with_own_ids(given[number % len(given)]) for number in range(WARM + CALLS)]
    runs = [new_id() for _ in range(2 * (WARM + CALLS))]
    ledger = ours.ledger
    return {
        "bare": lambda number: bare.append("bare", given[number]),
        "bare with a run": lambda number: bare.append("bare", named[number], runs[number]),
        "append": lambda number: ledger.messages.append("ours", given[number].models),
        "append with own ids and a run": lambda number: ledger.messages.append(
            "own", named[number].models, run_id=runs[-1 - number]
        ),
        "history of 50": lambda _: ledger.messages.history("ours", Newest(50)),
    }


def parts() -> Stages:
    """What an append does between its call and its driver, one part at a time."""
    terms, given = Terms(Tenant("default", "default")), turns()
    seen = Preflight(True, None, 0, 0, Tip(), 1)
    requests = [make_request(terms, "parts", turn.models) for turn in given]
    planned = [plan_on_cached_tip(one, seen) for one in requests]
    plans = [one for one in planned if one is not None]

    async def request(number: int) -> object:
        return make_request(terms, "parts", given[number].models).bytes

    async def plan(number: int) -> object:
        return plan_on_cached_tip(requests[number], seen)

    async def statement(number: int) -> object:
        return one_statement(plans[number])

    async def result(number: int) -> object:
        return appended(plans[number]), preflight_after(plans[number], seen, Written(touched=False))

    return dict(zip(PARTS, (request, plan, statement, result), strict=True))


def tell(what: str) -> None:
    """Wait until the parent has begun or ended the count."""
    print(what, flush=True)
    sys.stdin.readline()


# --- The process that counts ------------------------------------------------------------------------------------------


def counted(kind: str, url: str) -> dict[str, float]:
    """The thousands of instructions of one call, by stage."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        program = [sys.executable, "-m", "benchmarks.instructions", kind, url]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(
            [*command, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            found: dict[str, float] = {}
            for number, line in enumerate(process.stdout, 1):
                event, _, name = line.strip().partition(" ")
                if event == "begin":
                    print(f"{kind}: {name}", file=sys.stderr)
                if event == "begin":
                    control(process.pid, "--instr=on")  # from here on the process takes twenty times as long
                    control(process.pid, "--zero")
                else:
                    control(process.pid, f"--dump={number}")
                    control(process.pid, "--instr=off")
                    newest = max(out.parent.glob("callgrind.out.*"), key=lambda path: path.stat().st_mtime_ns)
                    total = _TOTAL.search(newest.read_text())
                    assert total is not None
                    found[name] = int(total[1]) / CALLS / 1_000
                process.stdin.write("\n")
                process.stdin.flush()
        if process.returncode:
            raise SystemExit(process.returncode)
        return found


def control(pid: int, order: str) -> None:
    subprocess.run(["callgrind_control", order, str(pid)], check=True, capture_output=True)


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    with server() as running, running.database() as pg_url, tempfile.TemporaryDirectory() as folder:
        urls = {"postgresql": pg_url, "sqlite": str(Path(folder) / "ledger.db")}
        for url in urls.values():
            migrate(url)
        yield urls


def main() -> NoReturn:
    if sys.argv[1:]:
        asyncio.run(work(*sys.argv[1:]))
        raise SystemExit(0)
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is missing; on Debian: apt-get install valgrind")
    budgets, failed = tomllib.loads(BUDGET.read_text()), 0
    with databases() as urls:
        for kind, url in urls.items():
            found = counted(kind, url)
            print(f"\n{kind}: thousands of instructions of a call")
            for name in (*STAGES, *PARTS):
                if name in found:
                    print(f"  {name:<32}{found[name]:>8,.0f}")
            for name, most in budgets[kind].items():
                ours, _, base = name.partition(" / ")
                ratio = found[ours] / (found[base] if base else 1)
                failed += ratio > most
                print(f"  {name:<50}{ratio:>8,.2f}  at most {most:g}{'' if ratio <= most else '  MISSED'}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
