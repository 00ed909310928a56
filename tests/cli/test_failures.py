from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from chatledger.cli.outcome import ExitCode, finish, without_passwords
from tests.cli.commands import chatledger, start

NOWHERE = "postgresql://ada:s3cret@127.0.0.1:1/x"


def test_unreachable_database_is_one_line() -> None:
    outcome = chatledger("threads", url=NOWHERE)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.error.startswith("chatledger: the connection failed")


def test_debug_shows_a_traceback_and_no_password() -> None:
    outcome = chatledger("threads", "--debug", "--url", NOWHERE)
    assert outcome.code == 3
    assert outcome.err.startswith("Traceback")
    assert "s3cret" not in outcome.err


def test_command_that_mends_a_schema_shows_no_password(pg_url: str) -> None:
    outcome = chatledger("threads", url=pg_url.replace("//chatledger@", "//chatledger:s3cret@"))
    assert outcome.code == 3
    assert "chatledger migrate --url" in outcome.error
    assert "s3cret" not in outcome.error


@pytest.mark.parametrize("command", ["threads", "show t", "check", "export --all", "feedback summary"])
def test_reading_makes_no_file(tmp_path: Path, command: str) -> None:
    outcome = chatledger(*command.split(), url="typo.db", cwd=tmp_path)
    assert outcome.code == 3
    assert outcome.error.startswith("chatledger: there is no database typo.db")
    assert list(tmp_path.iterdir()) == []


def test_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database" * 100)
    assert chatledger("threads", url=str(path)).code == 3
    assert path.read_text() == "not a database" * 100


def test_unknown_thread_fails(sqlite_database: object, tmp_path: Path) -> None:
    outcome = chatledger("show", "no\x1b[31mbody", url=str(tmp_path / "ledger.db"))
    assert (outcome.code, outcome.error) == (3, r"chatledger: there is no thread 'no\x1b[31mbody'")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at postgresql://u:p@h/d.", "at postgresql://u:***@h/d."),
        ("postgresql://u:p@ss:w/rd@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
    ],
)
def test_passwords_are_not_shown(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


@pytest.mark.parametrize("command", ["threads", "threads --json", "show weather", "formats"])
def test_broken_pipe_is_quiet(tmp_path: Path, command: str) -> None:
    ledger, record = tmp_path / "ledger.db", tmp_path / "weather.json"
    record.write_text('{"id": "weather", "messages": [{"role": "user", "content": "Tokyo?"}]}')
    assert chatledger("import", record, "--thread-field", "id", url=str(ledger)).code == 0
    reading, writing = os.pipe()
    os.close(reading)
    address = [] if command == "formats" else ["--url", ledger]
    process = start(*command.split(), *address, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, b"")


def test_interrupt_ends_with_130(tmp_path: Path) -> None:
    # A suite in the background of a shell ignores interrupts, and what it starts would as well.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = start("import", "-", "--url", tmp_path / "l.db", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, ours)
    while not (tmp_path / "l.db-wal").exists():  # it has begun, and waits for its input
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"chatledger: interrupted\n")


def test_unexpected_error_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        raise ZeroDivisionError("by zero")

    assert finish(broken) == ExitCode.FAILED
    assert capsys.readouterr().err == "chatledger: ZeroDivisionError: by zero (--debug shows where)\n"
