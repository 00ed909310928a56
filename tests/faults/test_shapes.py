"""Sixteen writers on one thread, on sixteen and on a thousand, over two ledgers of one database."""

from __future__ import annotations

import random

import pytest

from tests.conftest import Database
from tests.faults.writers import write_group

APPENDS = 1_200


@pytest.mark.parametrize("threads", [1, 16, 1_000])
async def test_writers_together(database: Database, threads: int) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    assert (await write_group(database, threads=threads, appends=APPENDS, seed=seed)).acknowledged == APPENDS
