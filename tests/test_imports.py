"""Which modules load when: a service that appends does not wait for the command line, migrations or formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LATER = (
    *("alembic", "asyncpg", "typer", "rich", "sqlalchemy.ext.asyncio", "sqlalchemy.orm"),
    *("chatledger.cli", "chatledger.formats", "chatledger.reports", "chatledger.telemetry.otel", "chatledger.transfer"),
)
SHOW = f"import sys; print(*sorted(name for name in sys.modules if name.startswith({LATER!r})))"
APPEND = """
import asyncio, sys
from chatledger import ChatMessage, Feedback, Ledger
async def main():
    async with Ledger.open(sys.argv[1]) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [ChatMessage(role="user", content="Tokyo?")], run_id="r")
        await ledger.messages.history("t")
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4))
asyncio.run(main())
"""
NAMES = "from chatledger import ChatMessage, Feedback, Ledger, ThreadNotFound, Transaction"
FORMAT = """
import chatledger.formats
chatledger.formats.get_codec("openai-chat")
"""


def loaded(script: str, *arguments: str) -> list[str]:
    """Of the modules that are for later, those that the script loads."""
    command = [sys.executable, "-c", f"{script}\n{SHOW}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("script", ["import chatledger", NAMES])
def test_an_import_loads_nothing_that_is_for_later(script: str) -> None:
    assert loaded(script) == []


def test_a_ledger_on_a_new_file_loads_nothing_that_is_for_later(tmp_path: Path) -> None:
    assert loaded(APPEND, str(tmp_path / "ledger.db")) == []


def test_the_package_alone_loads_no_database() -> None:
    script = "import sys, chatledger; print(*{'sqlalchemy', 'pydantic', 'asyncpg', 'aiosqlite'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_format_is_loaded_when_it_is_used() -> None:
    found = loaded(FORMAT)
    assert "chatledger.formats" in found
    assert not any(name.startswith(("alembic", "typer", "chatledger.cli")) for name in found)
