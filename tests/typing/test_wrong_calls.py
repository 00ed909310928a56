"""Type checkers refuse each wrong call, at its line, and nothing that is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typing.pyright import run_pyright
from tests.typing.wrong_calls import FIRST, PROGRAM, WRONG

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("typing") / "program.py"
    path.write_text(PROGRAM)
    return path


def by_mypy(program: Path) -> dict[int, str]:
    """The first error of each line."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--config-file",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert not done.stderr, done.stderr
    found = re.findall(r"program\.py:(\d+): error: (.*)", done.stdout)
    return {int(line): said for line, said in reversed(found)}


def by_pyright(program: Path) -> dict[int, str]:
    said = json.loads(run_pyright("--outputjson", str(program), paths=[ROOT / "src"]))
    errors = [one for one in said["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in reversed(errors)}


@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_each_wrong_call_is_refused_and_no_right_one(check: object, program: Path) -> None:
    assert callable(check)
    found = check(program)
    assert {line: said for line, said in found.items() if line < FIRST} == {}
    assert [call for number, call in enumerate(WRONG) if FIRST + number not in found] == []
