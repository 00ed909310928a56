"""Mutation checks: each proof run without the protection that it is about, which must make it fail.

python -m tests.faults.mutants [NAME…] [--sample K/N]

`mutants.toml` lists the protections, and `mutant.py` takes one away. `--sample K/N` runs each Nth mutant from the Kth
on, so that N runs, with K, K + 1, …, run all.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests import VARIABLE
from tests.faults.mutant import Mutant, read_mutants
from tests.postgres import URL_VARIABLE, server

TIMEOUT = 240
AT_ONCE = 2


def main() -> int:
    mutants = _choose()
    survivors = []
    with server() as running, ThreadPoolExecutor(AT_ONCE) as pool:
        os.environ[URL_VARIABLE] = running.url
        for mutant, (outcome, seconds) in zip(mutants, pool.map(_timed, mutants), strict=True):
            print(f"{mutant.name:24} {outcome:10} {seconds:5.1f} s   without {mutant.without}", flush=True)
            if outcome != "found":
                survivors.append(mutant.name)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} proofs fail without their protection")
    if survivors:
        print(f"without mutants: {', '.join(survivors)}")
    return bool(survivors)


def _choose() -> Sequence[Mutant]:
    """The mutants that the command line names."""
    mutants = read_mutants()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sample", metavar="K/N", help="each Nth mutant from the Kth on; K may be larger than N")
    asked = parser.parse_args()
    if unknown := set(asked.names) - {mutant.name for mutant in mutants}:
        parser.error(f"mutants.toml has no {', '.join(sorted(unknown))}")
    if asked.names:
        mutants = [mutant for mutant in mutants if mutant.name in asked.names]
    if asked.sample is not None:
        try:
            mutants = sample(mutants, asked.sample)
        except ValueError as error:
            parser.error(str(error))
    return mutants


def sample(mutants: Sequence[Mutant], part: str) -> Sequence[Mutant]:
    """Each Nth mutant from the Kth on, for the `part` "K/N". Raises ValueError."""
    numbers = re.fullmatch(r"([0-9]+)/0*([1-9][0-9]*)", part)
    if numbers is None:
        raise ValueError(f"--sample takes two numbers such as 3/20, not {part}")
    first, step = map(int, numbers.groups())
    return mutants[first % step :: step]


def _timed(mutant: Mutant) -> tuple[str, float]:
    began = time.monotonic()
    return _outcome(mutant), time.monotonic() - began


def _outcome(mutant: Mutant) -> str:
    """found, or why that cannot be said of it."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += shlex.split(f"tests/{mutant.test}")
    with tempfile.TemporaryDirectory(prefix="chatledger-mutants-") as folder:
        environment = os.environ | {
            VARIABLE: mutant.name,
            "CHATLEDGER_FAILURES": folder,
            "CHATLEDGER_HYPOTHESIS": "first failure",
        }
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    if done.returncode == 0:
        return "PASSES"
    if done.returncode != 1 or not re.search(mutant.finds, done.stdout):
        print(done.stdout[-3_000:], done.stderr[-1_000:])
        return "breaks"
    return "found"


if __name__ == "__main__":
    sys.exit(main())
