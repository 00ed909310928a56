"""Real processes that begin at the same moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def run_together(script: str, *arguments: str, count: int) -> list[str]:
    """The output of each process. The processes import first, and then wait for one moment to begin together.

    `script` is the body of `async def main(arguments: list[str])`. A process that fails fails the test.
    """
    start = time.time() + 2
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(body=_indented(script), start=start), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"},
        )
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    failed = [errors for process, (_, errors) in zip(processes, outputs, strict=True) if process.returncode]
    assert not failed, failed[0]
    return [printed.strip() for printed, _ in outputs]


_PROGRAM = """
import asyncio, sys, time
import tests  # before the library, for mutants
import chatledger
from chatledger import Ledger
from chatledger.admin import migrate
from chatledger.storage.upgrade import migrate as _
async def main(arguments):
{body}
time.sleep(max(0.0, {start} - time.time()))
asyncio.run(main(sys.argv[1:]))
"""


def _indented(script: str) -> str:
    return "\n".join(f"    {line}" for line in script.strip().splitlines())
