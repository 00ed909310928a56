"""What a new process waits for: the import, and the first message stored in a new SQLite file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Sample
from benchmarks.progress import say
from benchmarks.report import Row, Target, milliseconds

_BEFORE = """
import time
import sqlalchemy.ext.asyncio
from pydantic import BaseModel, TypeAdapter
class Model(BaseModel):
    text: str
TypeAdapter(list[Model])
start = time.perf_counter()
"""
_AFTER = "\nprint(time.perf_counter() - start)\n"
_IMPORT = _BEFORE + "import chatledger" + _AFTER
# The package loads a public name when it is first asked for: what a program pays is this.
_NAMES = "from chatledger import ChatMessage, Feedback, Ledger, ToolCall, Transaction"
_USED = _BEFORE + _NAMES + _AFTER
_BASE = """
import time
start = time.perf_counter()
import sqlalchemy.ext.asyncio
from pydantic import BaseModel, TypeAdapter
class Model(BaseModel):
    text: str
TypeAdapter(list[Model])
print(time.perf_counter() - start)
"""
BASE = "SQLAlchemy asyncio and Pydantic"
ADDED = "import chatledger adds"
USED = "its ledger and its models add"
_UNUSED = """
import sys
from chatledger import ChatMessage, Feedback, Ledger, ToolCall, Transaction
unused = ("alembic", "typer", "rich", "chatledger.formats", "chatledger.cli")
print(sum(name.startswith(unused) for name in sys.modules))
"""
_FIRST = """
import asyncio, sys
from chatledger import ChatMessage, Ledger
async def main():
    async with Ledger.open(sys.argv[1]) as ledger:
        thread = await ledger.threads.create()
        await ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="Tokyo?")])
        print("stored", flush=True)
asyncio.run(main())
"""
_BARE_FIRST = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in open(sys.argv[2]).read().split(";;"):
    connection.execute(statement)
connection.execute("PRAGMA synchronous = FULL")
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO threads (tenant_id, thread_id, active_branch, created_at, active_at)"
                   " VALUES ('default', 't', 0, 0, 0)")
connection.execute("INSERT INTO branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, created_at)"
                   " VALUES ('default', 't', 0, '[[0,1,null]]', 1, 0, 0)")
connection.execute("INSERT INTO messages (tenant_id, thread_id, branch, seq, role, text, state, created_at)"
                   " VALUES ('default', 't', 0, 1, 'user', 'Tokyo?', 'complete', 0)")
connection.execute("COMMIT")
print("stored", flush=True)
"""


def start_rows(count: int, schema: list[str]) -> list[Row]:
    """`schema`: the statements that make our tables on SQLite, for the bare start."""
    say("start of a process")
    scripts = {BASE: _BASE, ADDED: _IMPORT, USED: _USED}
    imports: dict[str, list[float]] = {name: [] for name in scripts}
    firsts: dict[str, list[float]] = {"sqlite3": [], "chatledger": []}
    with tempfile.TemporaryDirectory() as folder:
        statements = Path(folder) / "schema.sql"
        statements.write_text(";;".join(["PRAGMA journal_mode = WAL", *schema]))
        for number in range(count + 1):  # the first compiles modules to bytecode and is not counted
            times = (
                *map(_printed, scripts.values()),
                _until_stored(_BARE_FIRST, f"{folder}/bare{number}.db", str(statements)),
                _until_stored(_FIRST, f"{folder}/ours{number}.db"),
            )
            for times_of, duration in zip((*imports.values(), *firsts.values()), times, strict=True):
                times_of += [duration] if number else []
    targets = {ADDED: Target(60, " ms"), "chatledger": Target(600, " ms")}
    rows = [_row("import", who, times_of, targets) for who, times_of in imports.items()]
    unused = _printed(_UNUSED)
    rows.append(Row("import", "modules that nobody used yet", f"{unused:.0f}", target=Target(0), judged=unused))
    return rows + [_row("first stored message, new file", who, of, targets) for who, of in firsts.items()]


def _row(case: str, who: str, times: list[float], targets: dict[str, Target]) -> Row:
    sample = Sample(times)
    p95, spread = milliseconds(sample.percentile(95)), f"{sample.spread:.0%}"
    return Row(case, who, milliseconds(sample.median), p95, spread, "", targets.get(who), sample.median * 1000)


def _printed(script: str) -> float:
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(result.stdout)


def _until_stored(script: str, *arguments: str) -> float:
    """Seconds from the start of the process until it says so."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        duration = time.perf_counter() - start
    if line != "stored\n" or process.returncode:
        raise RuntimeError(f"a first message was not stored: exit code {process.returncode}")
    return duration
