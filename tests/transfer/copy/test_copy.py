"""A copy has everything: random ledgers go from SQLite to PostgreSQL and back, and each public read is equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chatledger.admin import copy
from tests.transfer.copy.random_ledger import accept_marks, fill, reads


async def move(source: str, target: str, **options: Any) -> None:
    """Copy until the target is open to all."""
    await copy(source, target, **options)
    report = await copy(source, target, verify=True, done=True, **options)
    assert report.differences == []
    assert report.ended


def marks_of(found: dict[tuple[str, ...], Any]) -> dict[tuple[str, str], str]:
    return {
        (tenant, rest[-1]): answer.mark
        for (tenant, what, *rest), answer in found.items()
        if what == "history" and rest[0] == "0"
    }


async def there_and_back(seed: int, folder: Path, pg_url: str) -> tuple[int, int]:
    """Returns how many reads were equal, and how many marks of the source the last copy accepted."""
    source, back = str(folder / f"{seed}.db"), str(folder / f"{seed}-back.db")
    encrypted = await fill(source, seed)
    before = await reads(source, encrypted=encrypted)
    await move(source, pg_url, keep_open_runs=True)
    assert await reads(pg_url, encrypted=encrypted) == before
    await move(pg_url, back, keep_open_runs=True)
    assert await reads(back, encrypted=encrypted) == before
    return len(before), await accept_marks(back, marks_of(before), encrypted=encrypted)


@pytest.mark.parametrize("seed", range(3))
async def test_every_read_is_equal_there_and_back(seed: int, tmp_path: Path, pg_url: str) -> None:
    reads_, marks = await there_and_back(seed, tmp_path, pg_url)
    assert reads_ > 100
    assert marks > 0
