"""Exit codes: the same fault exits with the same code in every command, and one line explains it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from chatledger.cli.exit_codes import EXIT_CODES, MOST, ExitCode, finish, without_passwords
from tests.cli.commands import chatledger, start
from tests.conftest import Database

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
NOWHERE = "postgresql://ada:s3cret@127.0.0.1:1/x"


@pytest.fixture
def folder(sqlite_database: Database) -> Path:
    """A folder with a ledger.db and files of each kind."""
    folder = Path(sqlite_database.url).parent
    (folder / "chat.json").write_text('[{"messages": [{"role": "user", "content": "a"}]}]')
    (folder / "unknown.json").write_text('{"a": 1}')
    (folder / "empty.json").write_text(" \n")
    (folder / "none.json").write_text("[]")
    (folder / "none.jsonl").write_text("")
    (folder / "wide.json").write_text('[{"a": 1}]', encoding="utf-16")
    (folder / "torn.jsonl").write_bytes(b'{"messages": [{"role": "user", "content": "a"}]}\n{"messages": "\xff"}\n')
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("import nowhere.json", "there is no file nowhere.json"),
        ("convert nowhere.json --to anthropic", "there is no file nowhere.json"),
        ("restore nowhere.db --url other.db", "there is no file nowhere.db"),
        ("export --all -o nowhere/out.json", "cannot write nowhere/out.json: there is no folder nowhere"),
        ("convert chat.json --to anthropic -o nowhere/out.json", "cannot write nowhere/out.json"),
        ("backup nowhere/copy.db", "cannot write nowhere/copy.db: there is no folder nowhere"),
        ("--keys nowhere.json threads", "there is no file nowhere.json"),
        ("import .", ". is a folder; give a file in it"),
        ("restore . --url other.db", ". is a folder; give a file in it"),
        ("export --all -o .", "cannot write .: it is a folder"),
        ("import chat.json --format fax", "unknown format 'fax'; known formats: agent-framework, agent-service, "),
        ("convert chat.json --to fax", "unknown format 'fax'; known formats: agent-framework, agent-service, "),
        (
            "convert chat.json --from fax --to anthropic",
            "unknown format 'fax'; known formats: agent-framework, agent-service, ",
        ),
        ("show t --format fax", "unknown format 'fax'; known formats: agent-framework, agent-service, "),
        ("export --all --format fax", "unknown format 'fax'; known formats: agent-framework, agent-service, "),
        ("check --provider fax", "no provider accepts the format 'fax'"),
        ("threads --cursor fax", "cursor 'fax': not a cursor"),
        ("migrate --to 0042", "to must be head, base or one of 0001, "),
        ("migrate --to fax", "--to takes a revision such as 0001, head or base"),
    ],
)
def test_unknown_words_and_missing_files_are_usage_errors(folder: Path, words: str, said: str) -> None:
    outcome = chatledger(*words.split(), url="ledger.db", cwd=folder)
    assert (outcome.code, outcome.out) == (ExitCode.USAGE, "")
    assert outcome.error.startswith(f"chatledger: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("threads --url nowhere.db", "there is no database nowhere.db"),
        ("threads --url .", "cannot open .: it is a folder; pass the path of a file"),
        ("threads --url chat.json", "chat.json is not a SQLite database"),
        ("show t", "there is no thread 't'"),
        ("erase-message t m --yes", "there is no thread 't'"),
    ],
)
def test_failures_exit_with_3(folder: Path, words: str, said: str) -> None:
    outcome = chatledger(*words.split(), url="ledger.db", cwd=folder)
    assert (outcome.code, outcome.out) == (ExitCode.FAILED, "")
    assert outcome.error.startswith(f"chatledger: {said}")


@pytest.mark.parametrize(
    ("file", "code", "said"),
    [
        ("empty.json", ExitCode.FOUND, "empty.json, record 0, byte 2: the file is empty"),
        ("wide.json", ExitCode.FOUND, "wide.json, record 0, byte 0: not JSON but perhaps UTF-16; save it as UTF-8"),
        ("none.json", ExitCode.OK, "none.json: contains no records"),
        ("none.jsonl", ExitCode.OK, "none.jsonl: contains no records"),
        ("torn.jsonl", ExitCode.FOUND, "torn.jsonl, line 2, byte 63: not UTF-8"),
    ],
)
def test_a_file_without_a_record_is_named(folder: Path, file: str, code: int, said: str) -> None:
    outcome = chatledger("import", file, url="ledger.db", cwd=folder)
    assert (outcome.code, outcome.error) == (code, f"chatledger: {said}")
    as_json = chatledger("import", file, "--json", url="ledger.db", cwd=folder).json
    assert as_json["empty"] == ([file] if file.startswith("none") else [])


@pytest.mark.parametrize(("command", "option"), [("import", "--format"), ("convert --to anthropic", "--from")])
def test_help_for_unknown_files_is_printed_once(folder: Path, command: str, option: str) -> None:
    files = ["unknown.json", "wild.json"] if command == "import" else ["unknown.json"]
    (folder / "wild.json").write_text('{"b": 1}')
    outcome = chatledger(*command.split(), *files, url="ledger.db", cwd=folder)
    *refused, help_ = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (ExitCode.FAILED, "")
    assert [line.split(" matches ")[0] for line in refused] == [
        f"chatledger: {file}, line 1: a record with '{key}'" for file, key in zip(files, "ab", strict=False)
    ]
    assert help_.startswith(
        f"chatledger: --field names the field of the messages, {option} their format: agent-framework, "
    )


def test_the_help_and_the_page_explain_the_codes() -> None:
    listed = dict(re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(listed) == {str(int(code)) for code in ExitCode}
    assert all(f"{int(code)} {listed[str(int(code))].split(',')[0].split(':')[0]}" in EXIT_CODES for code in ExitCode)
    told = " ".join(chatledger("--help").out.split())
    assert EXIT_CODES in told


@pytest.mark.parametrize("command", ["threads", "migrate", "schema"])
def test_unreachable_database_is_one_line_that_names_it(command: str) -> None:
    outcome = chatledger(command, url=NOWHERE)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.error.startswith("chatledger: the connection failed")
    assert outcome.error.count("postgresql://") == 1


def test_the_address_of_the_server_is_not_taken_for_the_database() -> None:
    outcome = chatledger("migrate", "--url", "http://127.0.0.1:8000")
    assert outcome.code == 2
    assert "it is the database, not the server" in " ".join(outcome.err.split())


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
def test_a_reading_command_creates_no_file(tmp_path: Path, command: str) -> None:
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
    place = tmp_path / "ledger.db"
    outcome = chatledger("show", "no\x1b[31mbody", url=str(place))
    said = rf"chatledger: there is no thread 'no\x1b[31mbody'; the database is {place}"
    assert (outcome.code, outcome.error) == (3, said)


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


@pytest.mark.parametrize("end", ["", "@h/d"])
def test_a_long_error_is_cut_before_it_is_searched(end: str) -> None:
    """The search was square: 90 kB took eleven seconds. A password across the cut stays hidden."""
    long = "x" * (MOST - 30) + " postgresql://user:" + "secret" * 20 + end
    assert "secret" not in without_passwords(long)
    shown = without_passwords("://:" * 22_500 + end)
    assert len(shown) < MOST + 100
    assert shown.endswith("characters)")


def test_each_line_of_a_traceback_is_searched() -> None:
    lines = ["postgresql://u:p@h/d", "x" * MOST, "ValueError"] * 1_000
    shown = without_passwords("\n".join(lines)).split("\n")
    assert shown == [line.replace(":p@", ":***@") for line in lines]


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
    assert capsys.readouterr().err == "chatledger: unexpected ZeroDivisionError: by zero (--debug prints a traceback)\n"
