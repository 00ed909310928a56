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
KINDS = ("plain", "encrypted")


def name_of(kind: str) -> str:
    """The name of a file, as `released.kept` takes it. Both databases share it."""
    return f"candidate/{kind}"


def run_candidate(command: str, url: str, kind: str) -> Any:
    """What the candidate's own program reads of the database, which it makes first if the command is `write`."""
    environment = os.environ | {"PYTHONPATH": str(build() / "site")}
    arguments = [sys.executable, str(PROGRAM), command, url, kind]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
