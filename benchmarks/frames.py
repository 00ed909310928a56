"""What a process holds that reads all messages of a large database as Arrow batches, or exports them to Parquet.

Each runs in a process of its own, and the figure is the largest resident memory of that process, with Python, the
library and pyarrow in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.cases import Extent
from benchmarks.progress import say
from benchmarks.report import Row, Target
from benchmarks.seed import Plan

LONG = 10
"""A tenth of the messages stand in one thread, the others in threads of so many."""
TARGET = Target(200, " MB")

_WORK = """
import asyncio, json, sys, time
from pathlib import Path
from chatledger import Ledger
from chatledger.transfer.parquet import export_parquet

async def read(ledger):
    return sum([batch.num_rows async for batch in ledger.frames("messages")])

async def export(ledger):
    return (await export_parquet(ledger, Path(sys.argv[3])))["messages"]

async def main():
    async with Ledger.open(sys.argv[1]) as ledger:
        began = time.monotonic()
        rows = await {"read": read, "export": export}[sys.argv[2]](ledger)
        return rows, time.monotonic() - began

rows, seconds = asyncio.run(main())
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([rows, seconds, peak * 1024]))
"""


def frame_plan(extent: Extent) -> Plan:
    """Ten times the messages of the longest thread: 1,000,000 in a full run."""
    plan = Plan()
    plan.threads(extent.longest)
    left = 10 * extent.longest - sum(plan.lengths.values())
    plan.threads(LONG, left // LONG)
    return plan


def frame_rows(url: str, plan: Plan) -> list[Row]:
    """`url` is a database that the plan has filled."""
    count = sum(plan.lengths.values())
    case = f"frames of {count:,} messages"
    rows = []
    for who, work in (('ledger.frames("messages")', "read"), ("export --parquet", "export")):
        say(f"{case}: {who}")
        with tempfile.TemporaryDirectory(prefix="chatledger-bench-") as folder:
            command = [sys.executable, "-c", _WORK, url, work, folder]
            found, seconds, peak = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        if found != count:
            raise SystemExit(f"{case}: {who} gave {found:,}")
        shown = f"{peak / 1e6:.0f} MB"
        rows.append(Row(case, who, shown, f"{count / seconds:,.0f} /s", target=TARGET, judged=peak / 1e6))
    return rows
