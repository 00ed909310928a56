"""The databases that the release candidate made, and its own program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from release.candidate import build

PROGRAM = Path(__file__).with_name("program.py")
DELETING = Path(__file__).with_name("deleting.py")
KINDS = ("plain", "encrypted")


def name_of(kind: str) -> str:
    """The name of a file, as `released.kept` takes it. Both databases share it."""
    return f"candidate/{kind}"


def run_candidate(command: str, url: str, kind: str) -> Any:
    """What the candidate's own program reads of the database, which it makes first if the command is `write`."""
    arguments = [sys.executable, str(PROGRAM), command, url, kind]
    done = subprocess.run(arguments, env=candidate_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def start_deleting(url: str) -> subprocess.Popen[str]:
    """The candidate's program, once it has stored its threads."""
    arguments = [sys.executable, str(DELETING), url]
    process = subprocess.Popen(
        arguments,
        env=candidate_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise AssertionError(process.communicate()[1])
    return process


def candidate_environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(build() / "site")}
