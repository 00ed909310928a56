"""A copy killed with SIGKILL: each thread is in the target as a whole or not at all, and the next copy goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chatledger.admin import copy, migrate
from tests.cli.commands import SOURCE
from tests.conftest import Database
from tests.storage.raw import query
from tests.storage.seeded import seed_sqlite

COUNTS = "SELECT tenant_id, thread_id, count(*) FROM messages GROUP BY tenant_id, thread_id"
COMMAND = [sys.executable, "-m", "chatledger.cli", "copy", "--from"]
ROWS = 3_000
OTHERS = ("feedback", "runs", "threads")
"""The tables of other tenants, which would only take time."""


def seeded(folder: Path) -> str:
    """A thread of 3,000 messages, and thousands without any, with a run and a score each."""
    path = folder / "source.db"
    migrate(path)
    seed_sqlite(path, ROWS, "".join(f"DELETE FROM {table} WHERE tenant_id <> 'default';" for table in OTHERS))
    return str(path)


def begin(source: str, target: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([*COMMAND, source, "--to", target], env=environment, stderr=subprocess.DEVNULL)


async def kill_at(source: str, target: Database, moment: float) -> None:
    """Kill a copy after so many seconds, and see that every thread is whole or missing."""
    process = begin(source, target.url)
    await asyncio.sleep(moment)
    process.kill()
    process.wait()
    whole = {tuple(row[:2]): row[2] for row in await query(Database("sqlite", source), COUNTS)}
    for tenant, thread, count in await query(target, COUNTS):
        assert whole[tenant, thread] == count


@pytest.mark.parametrize("moment", [1.5, 3.0, 5.0])
async def test_a_killed_copy_goes_on(moment: float, database: Database, tmp_path: Path) -> None:
    source = seeded(tmp_path)
    await kill_at(source, database, moment)
    report = await copy(source, database.url)
    assert report.threads == ROWS
    report = await copy(source, database.url, verify=True, done=True)
    assert (report.differences, report.ended) == ([], True)
