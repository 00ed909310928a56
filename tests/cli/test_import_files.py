from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.transfer.files import array, lines, talk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of two records as an array, and one of a good, a bad and a torn line."""
    (tmp_path / "two.json").write_bytes(array({"n": 1, "messages": talk("a", "b")}, {"n": 2, "messages": talk("c")}))
    (tmp_path / "bad.jsonl").write_bytes(lines({"n": 3, "messages": talk("d")}, {"n": 4}) + b'{"n": 5, "mess')
    return tmp_path


def counts(outcome: Any) -> list[int]:
    return [*outcome.json["threads"].values(), outcome.json["messages"]]


def test_import_twice_and_export(database: Database, folder: Path) -> None:
    first = chatledger("import", folder / "two.json", "--json", url=database.url)
    again = chatledger("import", folder / "two.json", "--json", url=database.url)
    assert (first.code, counts(first)) == (0, [2, 0, 0, 0, 3])
    assert (again.code, counts(again)) == (0, [0, 0, 2, 0, 0])
    export = chatledger("export", "--all", url=database.url)
    assert (export.json, export.err) == (json.loads((folder / "two.json").read_bytes()), "")


def test_bad_records_are_reported_and_the_others_imported(database: Database, folder: Path) -> None:
    outcome = chatledger("import", folder / "two.json", folder / "bad.jsonl", url=database.url)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "two.json: read as openai-chat (2)",
        "bad.jsonl: read as openai-chat (1)",
        "3 threads (3 created), 4 messages stored, 2 records failed",
        "3 records without a time got the current time; --time-field names its field",
    ]
    assert [line.split(": ")[1] for line in outcome.err.splitlines()] == [
        "bad.jsonl, line 2, byte 57",
        "bad.jsonl, line 3, byte 75",
    ]
    exported = chatledger("export", "--all", url=database.url).out.splitlines()
    assert [json.loads(line)["n"] for line in exported] == [1, 2, 3]


def test_stop_on_error_stops(folder: Path) -> None:
    files = (folder / "bad.jsonl", folder / "two.json")
    outcome = chatledger("import", *files, "--stop-on-error", "--json", url=str(folder / "l.db"))
    assert (outcome.code, counts(outcome), outcome.json["stopped"]) == (1, [1, 0, 0, 1, 1], True)


def test_dry_run_makes_no_file(folder: Path) -> None:
    outcome = chatledger("import", "two.json", "--dry-run", url="l.db", cwd=folder)
    assert outcome.code == 0
    assert "dry run, nothing is written: 2 threads (2 created), 3 messages to store\n" in outcome.out
    assert not (folder / "l.db").exists()


def test_a_missing_field_is_reported_once(folder: Path) -> None:
    outcome = chatledger("import", "two.json", "--field", "talk", url="l.db", cwd=folder)
    assert outcome.code == 3
    assert outcome.err.splitlines()[0] == (
        "chatledger: two.json, record 0, byte 3: talk: the record has no such field; it has a list under 'messages': "
        "try --field messages (and 1 more)"
    )


def test_failures_of_one_kind_are_reported_once(folder: Path) -> None:
    (folder / "ids.jsonl").write_bytes(lines(*({"id": [], "messages": talk("a")} for _ in range(3))))
    outcome = chatledger("import", "ids.jsonl", "--id-field", "id", url="l.db", cwd=folder)
    assert outcome.code == 1
    assert outcome.error == (
        "chatledger: ids.jsonl, line 1, byte 0: id: an id must be text or a whole number, not [] (and 2 more records)"
    )


def test_records_of_erased_threads_are_counted_and_named(folder: Path) -> None:
    records = [{"id": f"t{number}", "messages": talk("a")} for number in range(6)]
    (folder / "six.jsonl").write_bytes(lines(*records))
    words = ("import", "six.jsonl", "--thread-field", "id")
    chatledger(*words, url="l.db", cwd=folder)
    for number in range(5):
        chatledger("erase", "--thread", f"t{number}", "--yes", url="l.db", cwd=folder)
    outcome = chatledger(*words, url="l.db", cwd=folder)
    assert outcome.code == 1
    assert "1 thread (1 unchanged), 0 messages stored, 5 records skipped (erased)" in outcome.out
    assert outcome.err.splitlines() == [
        "chatledger: six.jsonl, line 1: thread 't0' was erased; its id is not used again; skipped",
        "chatledger: six.jsonl, line 2: thread 't1' was erased; its id is not used again; skipped",
        "chatledger: six.jsonl, line 3: thread 't2' was erased; its id is not used again; skipped",
        "chatledger: … and 2 more records of erased threads; --json lists them all",
    ]
    assert [one["place"] for one in chatledger(*words, "--json", url="l.db", cwd=folder).json["erased"]] == [
        f"line {number}" for number in range(1, 6)
    ]


def test_standard_input_is_read(folder: Path) -> None:
    outcome = chatledger("import", "-", "--json", url=str(folder / "l.db"), given=lines(talk("a")))
    assert counts(outcome) == [1, 0, 0, 0, 1]


def test_a_folder_is_reported_as_a_folder(folder: Path) -> None:
    outcome = chatledger("import", ".", url="l.db", cwd=folder)
    assert (outcome.code, outcome.error) == (2, "chatledger: . is a folder; give a file in it")


def test_missing_file_is_a_usage_error(folder: Path) -> None:
    outcome = chatledger("import", "two.json", "none.json", url="l.db", cwd=folder)
    assert (outcome.code, outcome.error) == (2, "chatledger: there is no file none.json")
    assert not (folder / "l.db").exists()


def test_file_of_no_known_format_is_refused_and_the_others_go_in(folder: Path) -> None:
    (folder / "other.json").write_text('{"a": 1}')
    both = chatledger("import", "other.json", "two.json", url="l.db", cwd=folder)
    assert (both.code, both.out.splitlines()[0]) == (1, "two.json: read as openai-chat (2)")
    assert both.err.startswith("chatledger: other.json, line 1: a record with 'a' matches no known format")
    alone = chatledger("import", "other.json", url="m.db", cwd=folder)
    assert (alone.code, alone.out) == (3, "")
    assert chatledger("export", "--all", url="m.db", cwd=folder).out == ""


def test_tenants_do_not_see_each_other(folder: Path) -> None:
    chatledger("import", "two.json", "--tenant", "a", url="l.db", cwd=folder)
    assert chatledger("export", "--all", "--tenant", "b", url="l.db", cwd=folder).out == ""
    assert len(chatledger("export", "--all", "--tenant", "a", url="l.db", cwd=folder).json) == 2


def test_another_file_of_the_same_name_needs_a_source(database: Database, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chat.json").write_text(json.dumps([{"role": "user", "content": name}]))
    both = [tmp_path / "one" / "chat.json", tmp_path / "two" / "chat.json"]
    refused = chatledger("import", *both, url=database.url)
    assert refused.code == 1
    assert "chat.json, line 1: the file begins with another record than the file 'chat.json'" in refused.err
    assert "1 thread (1 created), 1 message stored, 1 record failed" in refused.out
    for unchanged in (0, 1):
        named = chatledger("import", both[1], "--source", "two", "--json", url=database.url)
        assert (named.code, named.json["threads"]["unchanged"]) == (0, unchanged)
    assert chatledger("import", *both, "--source", "x", url=database.url).code == 2


def test_a_file_of_another_format_than_the_given_one_is_reported(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    turn = [
        {"role": "user", "content": "Tokyo?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    for name, messages in {"calls.json": turn, "plain.json": turn[:1]}.items():
        (tmp_path / name).write_text(json.dumps([{"messages": messages}]))
    files = ("calls.json", "plain.json")
    outcome = chatledger("import", *files, "--format", "anthropic", url="l.db", cwd=tmp_path)
    said = [line for line in outcome.err.splitlines() if "looks like" in line]
    assert said == ["chatledger: calls.json: looks like openai-chat, and was read as anthropic, which --format names"]
    assert "looks like" not in chatledger("import", *files, "--format", "openai-chat", url="m.db", cwd=tmp_path).err
