"""A backup under writers is one state: whole appends, all that was acknowledged before it began, and it checks out."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from chatledger.admin import backup, restore
from chatledger.storage.upgrade import backup as backup_module
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import turn
from tests.postgres import Server, find_clients

WRITERS = 8


async def write_until(ledger: Ledger, thread_id: str, stop: asyncio.Event) -> int:
    version = 0
    while not stop.is_set():
        version = (await ledger.messages.append(thread_id, turn(), run_id=f"run of {thread_id}")).last_seq
    return version


async def versions(path: Path | str) -> dict[str, int]:
    """By thread, after checking that each is whole."""
    found = {}
    async with Ledger.open(path) as ledger:
        for thread in await ledger.threads.list(limit=100):
            assert await findings_of(ledger, thread.thread_id) == []
            history = await ledger.messages.history(thread.thread_id)
            assert len(history.messages) == history.last_seq
            found[thread.thread_id] = history.last_seq
    return found


@pytest.mark.plain
async def test_a_backup_under_writers_is_one_state(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_module, "PAGES", 1)  # many steps, between which others write
    target = tmp_path / "copy.db"
    stop = asyncio.Event()
    async with sqlite_database.open() as ledger:
        names = [f"t{n}" for n in range(WRITERS)]
        for name in names:
            await ledger.threads.create(name)
        writers = [asyncio.create_task(write_until(ledger, name, stop)) for name in names]
        await asyncio.sleep(0.2)
        before = {name: (await ledger.messages.history(name)).last_seq for name in names}
        await asyncio.to_thread(backup, sqlite_database.url, target)
        after = {name: (await ledger.messages.history(name)).last_seq for name in names}
        stop.set()
        await asyncio.gather(*writers)
    copied = await versions(target)
    assert all(before[name] <= copied[name] <= after[name] for name in names)
    assert all(version % 5 == 0 for version in copied.values())
    assert sum(after.values()) > sum(before.values())  # they did write meanwhile


@pytest.mark.plain
async def test_a_backup_is_restored(sqlite_database: Database, tmp_path: Path) -> None:
    async with sqlite_database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
    seen: list[tuple[int, int]] = []
    backup(sqlite_database.url, tmp_path / "copy.db", progress=lambda done, total: seen.append((done, total)))
    restored = restore(tmp_path / "copy.db", tmp_path / "restored.db")
    assert await versions(restored) == {"t": 5}
    assert seen[-1][0] == seen[-1][1]
    async with Ledger.open(restored) as ledger:
        assert (await ledger.messages.append("t", turn())).last_seq == 10


async def test_nothing_is_overwritten(sqlite_database: Database, tmp_path: Path) -> None:
    taken = tmp_path / "taken.db"
    taken.write_text("precious")
    for attempt in (backup, restore):
        with pytest.raises(StorageError, match="exists already"):
            attempt(sqlite_database.url, taken)
    assert taken.read_text() == "precious"


async def test_a_file_that_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"not a database at all" * 400)
    with pytest.raises(StorageError):
        restore(junk, tmp_path / "new.db")
    with pytest.raises(StorageError, match="there is no file"):
        restore(tmp_path / "missing.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


async def filled(database: Database) -> Path:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn() * 20)
    return Path(database.url)


def test_a_damaged_file_gives_no_backup(sqlite_database: Database, tmp_path: Path) -> None:
    path = asyncio.run(filled(sqlite_database))
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes(8192) + content[middle + 8192 :])
    with pytest.raises(StorageError):
        backup(path, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("copy")] == []


PARAMETERS = "application_name=it%27s&connect_timeout=9&statement_cache_size=0&command_timeout=5"


def said(call: Callable[..., object], *arguments: object) -> str:
    """The command that the error names."""
    with pytest.raises(StorageError) as caught:
        call(*arguments)
    return str(caught.value).removeprefix("a PostgreSQL database is backed up by its own tools: ")


@pytest.mark.plain
def test_postgresql_names_commands_that_work_as_printed(
    pg_server: Server, pg_database: Database, tmp_path: Path
) -> None:
    asyncio.run(filled(pg_database))
    environment = os.environ | {"PATH": f"{find_clients()}{os.pathsep}{os.environ['PATH']}"}
    file = tmp_path / "the server's copy"
    with pg_server.database() as empty:
        dump = said(backup, f"{pg_database.url}?{PARAMETERS}", file)
        restored = said(restore, file, f"{empty}?{PARAMETERS}")
        for command in (dump, restored):
            done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
        assert asyncio.run(versions(empty)) == {"t": 100}


def test_the_commands_for_postgresql_leave_passwords_to_its_tools() -> None:
    url = "postgresql://ada:se%40cret@db.example/chats?sslmode=require&ssl_min_protocol_version=TLSv1.3&password=hush"
    assert said(backup, url, "a b") == (
        "pg_dump --format=custom --schema=chatledger --file='a b' "
        "'postgresql://ada@db.example/chats?ssl_min_protocol_version=TLSv1.3&sslmode=require'"
    )
    assert said(restore, "a", "postgresql://db/chats") == "pg_restore --exit-on-error a --dbname postgresql://db/chats"


async def test_a_backup_to_a_missing_folder_names_it(sqlite_database: Database, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nope/c\.db: the folder .*nope does not exist"):
        await asyncio.to_thread(backup, sqlite_database.url, tmp_path / "nope" / "c.db")
