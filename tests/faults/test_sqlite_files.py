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
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import chatledger
import chatledger.admin
from chatledger import Ledger, StorageError
from chatledger.storage.upgrade.versions import HEAD
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
import tests  # before the library, for mutants
from chatledger import Ledger, StorageError
from tests.faults.recording import Recorder, Recording

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
import asyncio, os, sys, tempfile
import tests  # before the library, for mutants
from chatledger import ChatMessage, Ledger, StorageError
from chatledger.admin import backup
from tests.checks import findings_of

async def main(path, account):
    if account:
        os.setgid(int(account)), os.setuid(int(account))
    try:
        async with Ledger.open(path) as ledger:
            print((await ledger.messages.history("t")).last_seq, len(await findings_of(ledger, "t")))
            for write in (lambda: ledger.messages.append("t", [ChatMessage(role="user", content="x")]), begin(ledger)):
                try:
                    await write()
                except StorageError as error:
                    print(error, error.retryable)
        with tempfile.TemporaryDirectory() as folder:
            print(backup(path, os.path.join(folder, "copy.db")).stat().st_size > 0)
    except StorageError as error:
        print("not opened:", error)

def begin(ledger):
    async def write():
        async with ledger.begin() as tx:
            await tx.threads.create("u")
    return write

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


def _unprivileged() -> str:
    """The account to become: root may do everything."""
    return str(pwd.getpwnam("nobody").pw_uid) if os.geteuid() == 0 else ""


async def test_a_file_that_may_not_be_written_is_read_and_refuses_writes(read_only: str) -> None:
    said = await asyncio.to_thread(_run, READ_ONLY, read_only, _unprivileged())
    refused = f"cannot write to {read_only}: the file or its folder is read-only False"
    assert said.splitlines() == ["2 0", refused, refused, "True"]
    assert [file.name for file in Path(read_only).parent.iterdir()] == ["ledger.db"]


async def test_a_file_whose_wal_cannot_be_read_is_not_read_without_it(read_only: str, tmp_path: Path) -> None:
    """The content of the WAL is committed, so the file alone would be an older state."""
    folder = Path(read_only).parent
    _set_modes(folder, 0o755, 0o644)
    async with Ledger.open(read_only) as ledger:
        await Recorder(ledger, Recording()).append("b", THREAD)
        for end in ("", "-wal"):
            shutil.copyfile(f"{read_only}{end}", tmp_path / f"copy{end}")
    for end in ("", "-wal"):
        shutil.copyfile(tmp_path / f"copy{end}", f"{read_only}{end}")
    _set_modes(folder, 0o555, 0o444)
    said = await asyncio.to_thread(_run, READ_ONLY, read_only, _unprivileged())
    (folder / "ledger.db-wal").unlink()
    assert said == (
        f"not opened: cannot open {read_only}: its WAL, {read_only}-wal, cannot be read in a read-only folder; "
        "copy both files to another\n"
    )


# --- Who may read it --------------------------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, str]:
    return {file.name: f"{file.stat().st_mode & 0o777:o}" for file in sorted(folder.iterdir())}


@pytest.fixture
def generous_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous_umask")
async def test_a_file_that_is_made_is_private_and_so_are_its_wal_and_its_copies(tmp_path: Path) -> None:
    async with Ledger.open(tmp_path / "a.db") as ledger:
        await ledger.threads.create(THREAD)
        assert modes(tmp_path) == {"a.db": "600", "a.db-shm": "600", "a.db-wal": "600"}
    await asyncio.to_thread(chatledger.admin.backup, tmp_path / "a.db", tmp_path / "b.db")
    await asyncio.to_thread(chatledger.admin.restore, tmp_path / "b.db", tmp_path / "c.db")
    await asyncio.to_thread(chatledger.admin.migrate, tmp_path / "d.db")
    await asyncio.to_thread(chatledger.admin.migrate, tmp_path / "d.db", to="0003")
    names = ("a.db", "b.db", "c.db", "d.db", f"d.db.{HEAD}.bak")
    assert modes(tmp_path) == dict.fromkeys(names, "600")


@pytest.mark.usefixtures("generous_umask")
async def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch(0o664)
    path.chmod(0o664)
    async with Ledger.open(path) as ledger:
        await ledger.threads.create(THREAD)
        assert set(modes(tmp_path).values()) == {"664"}
    await asyncio.to_thread(chatledger.admin.backup, path, tmp_path / "b.db")
    assert modes(tmp_path) == {"a.db": "664", "b.db": "600"}


@pytest.mark.usefixtures("generous_umask")
async def test_a_file_that_is_made_through_a_link_is_private(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    async with Ledger.open(tmp_path / "link.db"):
        assert modes(tmp_path)["real.db"] == "600"
