"""Damage to the files of a SQLite database that a killed process left behind.

The WAL holds a checksum for each of its pages, chained from the first: whatever is cut off, overwritten or flipped in
it, SQLite reads it up to the last commit before that, and no further. The main file has no checksums; what is flipped
in there is found only where it breaks the structure, so it is not damaged here but by being cut off.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chatledger import Ledger, StorageError
from tests.conftest import Database
from tests.faults.checker import Figures
from tests.faults.checker import check as check_recording
from tests.faults.recording import Append, Recorder, Recording
from tests.faults.stored import read_stored

THREADS = ("a", "b")

Damage = Callable[[bytearray, random.Random], None]


@dataclass(frozen=True)
class Left:
    """The file and its WAL at the moment the process was killed, and the recorded appends, in order."""

    database: Path
    appends: list[Append]

    @property
    def wal(self) -> Path:
        return wal_of(self.database)


def wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


async def leave(template: Path, folder: Path, *, appends: int, seed: int) -> Left:
    """Copied while the ledger is open, which is what a killed process leaves; the last third is in the WAL alone."""
    chance = random.Random(seed)
    source, target = folder / f"{seed}-source.db", folder / f"{seed}-left.db"
    shutil.copyfile(template, source)
    recording = Recording()
    async with Ledger.open(source) as ledger:
        recorder = Recorder(ledger, recording)
        for thread in THREADS:
            await ledger.threads.create(thread)
        for number in range(appends):
            if number == 2 * appends // 3:
                _checkpoint(source)
            await recorder.append(f"{seed}.{number}", chance.choice(THREADS))
        shutil.copyfile(source, target)
        shutil.copyfile(wal_of(source), wal_of(target))
    return Left(target, list(recording.appends.values()))


def _checkpoint(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")


async def damage_often(left: Left, folder: Path, *, times: int, seed: int) -> Figures:
    """Damages the file at random that many times. Each result opens as a prefix of the committed rows or is refused."""
    figures = Figures(acknowledged=len(left.appends))
    for number in range(times):
        chance = random.Random(f"{seed}.{number}")
        how = chance.choice(HOW)
        try:
            with contextlib.suppress(StorageError):  # refused: nobody was told anything wrong
                await _require_prefix(_damaged(left, folder / "damaged.db", how, chance), left)
        except AssertionError as error:
            error.add_note(f"{how.__name__}, seed {seed}, damage {number}")
            raise
        figures.faults += 1
    return figures


def _damaged(left: Left, copy: Path, how: Damage, chance: random.Random) -> Path:
    for path in (copy, wal_of(copy), copy.with_name(f"{copy.name}-shm")):
        path.unlink(missing_ok=True)
    shutil.copyfile(left.database, copy)
    wal = bytearray(left.wal.read_bytes())
    how(wal, chance)
    wal_of(copy).write_bytes(wal)
    return copy


async def _require_prefix(path: Path, left: Left) -> None:
    async with Ledger.open(path) as ledger:
        stored, faults = await read_stored(Database("sqlite", str(path)), ledger, THREADS)
        names = {message.message_id for branch in stored for message in branch.messages}
        count = sum(f"{append.name}/0" in names for append in left.appends)
        recording = Recording({append.name: append for append in left.appends[:count]})
        faults += check_recording(recording, stored)
        assert not faults, f"of {len(left.appends)} batches {count} are there: {faults[:5]}"
        await Recorder(ledger, Recording()).append("next", THREADS[0])  # and it takes what comes next


def cut(wal: bytearray, chance: random.Random) -> None:
    del wal[chance.randrange(len(wal)) :]


def garble(wal: bytearray, chance: random.Random) -> None:
    first = chance.randrange(len(wal))
    last = min(len(wal), first + chance.randrange(1, 8_192))
    wal[first:last] = chance.randbytes(last - first)


def flip(wal: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 4)):
        wal[chance.randrange(len(wal))] ^= 1 << chance.randrange(8)


def blank(wal: bytearray, chance: random.Random) -> None:
    """As a file system does that had not written a block yet."""
    first = chance.randrange(len(wal)) // 4_096 * 4_096
    wal[first : first + 4_096] = bytes(len(wal[first : first + 4_096]))


def lengthen(wal: bytearray, chance: random.Random) -> None:
    """Pages of before behind the end."""
    wal += wal[32 : 32 + 4_120 * chance.randrange(1, 4)]


HOW: tuple[Damage, ...] = (cut, garble, flip, blank, lengthen)
