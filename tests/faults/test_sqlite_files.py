"""A SQLite file that is locked, may not grow, or may not be written: refused whole, in the library's own words."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

import chatledger
from chatledger import Ledger, StorageError
from tests.conftest import Database
from tests.faults.checker import verdict
from tests.faults.recording import Recorder, Recording

THREAD = "t"


# --- Locked -----------------------------------------------------------------------------------------------------------


async def test_a_file_locked_for_a_while_is_waited_for(sqlite_database: Database) -> None:
    recording = Recording()
    async with sqlite_database.open() as ledger:
        await ledger.threads.create(THREAD)
        recorder = Recorder(ledger, recording, resolve=-1)
        with closing(sqlite3.connect(sqlite_database.url, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            appends = [asyncio.create_task(recorder.append(f"a{number}", THREAD)) for number in range(4)]
            await recorder.read(THREAD)  # a reader does not wait
            await asyncio.sleep(0.2)  # longer than it takes to be refused, if nobody waited
            assert not any(append.done() for append in appends)
            other.execute("COMMIT")
        await asyncio.gather(*appends)
        assert (await verdict(sqlite_database, ledger, [THREAD], recording)).acknowledged == 4


async def test_a_file_locked_beyond_the_time_out_is_a_retryable_error(
    sqlite_database: Database,
) -> None:
    recording = Recording()
    async with sqlite_database.open(timeout=0.1) as ledger:
        await ledger.threads.create(THREAD)
        recorder = Recorder(ledger, recording, resolve=-1)
        with closing(sqlite3.connect(sqlite_database.url, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await recorder.append("refused", THREAD) is None
            with pytest.raises(StorageError) as caught:
                async with ledger.begin():
                    pass
            other.execute("ROLLBACK")
        assert caught.value.retryable
        assert recording.appends["refused"].outcome == "refused"
        await recorder.append("stored", THREAD)
        assert (await verdict(sqlite_database, ledger, [THREAD], recording)).acknowledged == 1


# --- No room ----------------------------------------------------------------------------------------------------------


async def test_a_full_database_refuses_whole_batches_and_keeps_the_others(sqlite_database: Database) -> None:
    """As often as it is asked: until there is room again."""
    recording = Recording()
    async with sqlite_database.open() as ledger:
        await ledger.threads.create(THREAD)
        recorder = Recorder(ledger, recording, resolve=-1)
        pages = await ledger._scope.write(lambda sql: sql.fetch("PRAGMA page_count", {})[0][0])
        await ledger._scope.write(lambda sql: sql.fetch(f"PRAGMA max_page_count = {pages + 12}", {}))
        outcomes = [await recorder.append(f"alone {number}", THREAD) for number in range(40)]
        outcomes += await asyncio.gather(*(recorder.append(f"group {number}", THREAD) for number in range(20)))
        stored = [outcome for outcome in outcomes if outcome is not None]
        assert 0 < len(stored) < 60
        await ledger._scope.write(lambda sql: sql.fetch("PRAGMA max_page_count = 1000000", {}))
        await recorder.append("room again", THREAD)
        assert (await verdict(sqlite_database, ledger, [THREAD], recording)).acknowledged == len(stored) + 1


LIMITED = """
import asyncio, contextlib, resource, signal, sys
from chatledger import Ledger, StorageError
from tests.faults.recording import Recorder, Recording
from tests.faults import mutants
mutants.activate()

async def main(path, limit):
    async with Ledger.open(path) as ledger:
        recorder = Recorder(ledger, Recording(), tell=print, resolve=-1)
        await recorder.append("first", "t")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit is an error then, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for number in range(40):
            with contextlib.suppress(StorageError):
                await recorder.append(f"limited {number}", "t")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await recorder.append("last", "t")

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.parametrize("limit", [150_000, 151_111, 200_000])
async def test_a_file_that_may_not_grow_refuses_whole_batches(sqlite_database: Database, limit: int) -> None:
    """The limit is met within the WAL, in the middle of a page or between two."""
    recording = Recording()
    async with sqlite_database.open() as ledger:
        await ledger.threads.create(THREAD)
    done = await asyncio.to_thread(_run, LIMITED, sqlite_database.url, str(limit))
    for line in done.splitlines():
        recording.take(line)
    outcomes = [append.outcome for append in recording.appends.values()]
    assert (outcomes[0], outcomes[-1]) == ("acknowledged", "acknowledged")
    assert "refused" in outcomes
    async with sqlite_database.open() as ledger:
        await verdict(sqlite_database, ledger, [THREAD], recording)


def _run(script: str, *arguments: str) -> str:
    here, source = Path(__file__).parents[2], Path(chatledger.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=here,
        env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{here}"},
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout


# --- No right to write ------------------------------------------------------------------------------------------------

READ_ONLY = """
import asyncio, os, sys
from chatledger import ChatMessage, Ledger, StorageError
from tests.faults import mutants
mutants.activate()

async def main(path, account):
    if account:
        os.setgid(int(account)), os.setuid(int(account))
    try:
        async with Ledger.open(path) as ledger:
            print((await ledger.messages.history("t")).version)
            await ledger.messages.append("t", [ChatMessage(role="user", content="x")])
    except StorageError as error:
        print("refused", error.retryable)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def read_only(sqlite_template: Path) -> AsyncIterator[str]:
    """A file with a message in it, in a folder where nothing may be written. Outside of pytest's own, which another run
    of it closes to everybody else.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = shutil.copyfile(sqlite_template, folder / "ledger.db")
        async with Ledger.open(file) as ledger:
            await ledger.threads.create(THREAD)
            await Recorder(ledger, Recording()).append("a", THREAD)
        _set_modes(folder, 0o555, 0o444)
        yield str(file)
        _set_modes(folder, 0o755, 0o644)


def _set_modes(folder: Path, mode: int, of_file: int) -> None:
    (folder / "ledger.db").chmod(of_file)
    folder.chmod(mode)


async def test_a_file_that_may_not_be_written_refuses(read_only: str) -> None:
    """Opened by somebody who may only read it; root, who may do everything, becomes somebody else."""
    account = str(pwd.getpwnam("nobody").pw_uid) if os.geteuid() == 0 else ""
    said = await asyncio.to_thread(_run, READ_ONLY, read_only, account)
    assert said.splitlines()[-1] == "refused False"
