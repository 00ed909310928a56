"""Runs pyright, with the packages of this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_pyright(*arguments: str, paths: Sequence[Path]) -> str:
    """What it prints. It asks the `python` that it finds first for the places of modules, and `paths` come before."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",  # it would tell of newer releases
    }
    command = [sys.executable, "-m", "pyright", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: it found something
    return done.stdout
