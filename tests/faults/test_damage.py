"""A damaged SQLite file opens as a prefix of what was committed, or not at all."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from chatledger.errors import SchemaMismatch
from tests.checks import findings_of
from tests.faults.damage import THREADS, Left, damage_often, leave, wal_of

DAMAGES = 40


async def test_a_damaged_wal_opens_as_a_prefix(sqlite_template: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    left = await leave(sqlite_template, tmp_path, appends=60, seed=seed)
    assert (await damage_often(left, tmp_path, times=DAMAGES, seed=seed)).faults == DAMAGES


async def test_a_cut_main_file_is_refused(sqlite_template: Path, tmp_path: Path) -> None:
    """Its pages have no checksums, but there are as many as its first one says."""
    left = await leave(sqlite_template, tmp_path, appends=60, seed=1)
    wal_of(left.database).unlink()
    whole = left.database.read_bytes()
    for part in range(1, 12):
        left.database.write_bytes(whole[: len(whole) * part // 12])
        with pytest.raises((StorageError, SchemaMismatch)):
            async with Ledger.open(left.database) as ledger:
                for thread in THREADS:
                    await ledger.messages.history(thread)
                    await findings_of(ledger, thread)


async def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(random.Random(1).randbytes(20_000))
    with pytest.raises(StorageError):
        await Ledger.open(path)
    assert path.read_bytes() == random.Random(1).randbytes(20_000)


async def test_without_its_wal_a_file_keeps_its_checkpointed_rows(sqlite_template: Path, tmp_path: Path) -> None:
    left: Left = await leave(sqlite_template, tmp_path, appends=30, seed=2)
    wal_of(left.database).unlink()
    shutil.copyfile(left.database, tmp_path / "without.db")
    async with Ledger.open(tmp_path / "without.db") as ledger:
        versions = [(await ledger.messages.history(thread)).last_seq for thread in THREADS]
        assert sum(versions) == sum((one.last or 0) - (one.first or 0) + 1 for one in left.appends[:20])
