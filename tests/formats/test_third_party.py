"""A format that comes with another package works once pip has installed it, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import SOURCE
from tests.conftest import Database

PACKAGE = Path(__file__).with_name("third_party")
LOG = ["<ada> How cold is Oslo?", "<*bot> Three below.", "<bob> And Bergen?"]
PROGRAM = """
import asyncio, json, sys
from chatledger import ChatMessage, Ledger, Payload
from chatledger.formats import get_codec
from chatledger.testing import check_format

LOG = json.loads(sys.argv[2])

async def main():
    check_format(get_codec("irc"), [LOG])
    async with Ledger.open(sys.argv[1]) as ledger:
        await ledger.messages.append("t", Payload(LOG, "irc"), create=True)
        await ledger.messages.append("u", Payload(LOG), create=True)  # recognised
        stored = (await ledger.messages.history("u")).messages
        print(json.dumps([[one.format, one.role, one.name] for one in stored]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the package."""
    folder = tmp_path_factory.mktemp("third party")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder / "site")]
    command = [sys.executable, "-m", "pip", "install", *options, str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(site: Path, *words: str) -> str:
    """A Python process of an environment that has the package."""
    environment = {"PYTHONPATH": f"{SOURCE}:{site}", "PATH": "/usr/bin:/bin", "COLUMNS": "400"}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_stores_and_reads_it(site: Path, database: Database) -> None:
    stored = json.loads(run(site, "-c", PROGRAM, database.url, json.dumps(LOG)))
    assert stored == [["irc", "user", "ada"], ["irc", "assistant", "bot"], ["irc", "user", "bob"]]
    export = ("-m", "chatledger.cli", "export", "t", "--url", database.url)
    assert json.loads(run(site, *export, "--format", "irc")) == LOG
    assert [one["role"] for one in json.loads(run(site, *export, "--format", "openai-chat"))] == [
        "user",
        "assistant",
        "user",
    ]
    run(site, "-m", "chatledger.cli", "check", "--url", database.url)  # finds nothing


def test_the_command_line_lists_it(site: Path) -> None:
    assert "IRC" in run(site, "-m", "chatledger.cli", "formats").splitlines()[0].split()
