"""The long form of the proofs of copies: many random ledgers there and back, and kills at many moments.

python -m tests.transfer.copy.long [--ledgers 200] [--first 0] [--kills 10]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from chatledger.admin import copy, migrate
from tests.conftest import Database
from tests.postgres import Server, server
from tests.transfer.copy.test_copy import there_and_back
from tests.transfer.copy.test_kill import begin, kill_at, seeded


def move_ledgers(running: Server, first: int, count: int) -> str:
    reads = marks = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder, running.database() as url:
            more = asyncio.run(there_and_back(seed, Path(folder), url))
        reads, marks = reads + more[0], marks + more[1]
    return f"{count} ledgers there and back: {reads:,} reads equal on both copies, {marks:,} marks accepted"


def kill_copies(running: Server, count: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = seeded(Path(folder))
        began = time.monotonic()
        begin(source, str(Path(folder) / "timed.db")).wait()
        whole = time.monotonic() - began
        for number in range(count):
            with running.database() as url:
                file = number % 2 == 0
                target = Database("sqlite", str(Path(folder) / f"{number}.db")) if file else Database("postgresql", url)
                migrate(target.url)
                asyncio.run(kill_at(source, target, whole * (number + 1) / (count + 1)))
                asyncio.run(copy(source, target.url))
                report = asyncio.run(copy(source, target.url, verify=True, done=True))
                assert report.ended, report.differences
    return f"killed at {count} moments of {whole:.1f} s: nothing lost, and each copy went on"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    with server() as running:
        print(move_ledgers(running, options.first, options.ledgers), flush=True)
        print(kill_copies(running, options.kills))


if __name__ == "__main__":
    main()
