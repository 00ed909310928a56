"""`main` where typer and rich are not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.commands import SOURCE

WITHOUT = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == sys.argv[1] else find(name, *rest)
from chatledger.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("missing", ["typer", "rich"])
@pytest.mark.parametrize("words", ["", "--help", "migrate --url l.db", "threads --json"])
def test_without_the_extra_every_command_says_what_to_install(missing: str, words: str) -> None:
    call = [sys.executable, "-c", WITHOUT, missing, *words.split()]
    done = subprocess.run(call, capture_output=True, env={"PYTHONPATH": str(SOURCE)}, check=False)
    said = "chatledger: the command line needs an extra: pip install 'chatledger[cli]'\n"
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (2, "", said)
