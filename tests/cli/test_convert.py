from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger.formats import format_names
from tests.cli.commands import chatledger
from tests.transfer.files import array, lines, talk

SAMPLES = Path(__file__).parents[2] / "samples"


def convert(*words: object, given: bytes = b"") -> Any:
    return chatledger("convert", *words, given=given)


def test_records_come_out_in_the_other_format_and_keep_the_rest(tmp_path: Path) -> None:
    done = convert(SAMPLES / "recipes.sharegpt.json", "--to", "openai-chat")
    assert done.code == 0
    assert [list(record) for record in done.json] == [["tools", "messages"]] * 2
    roles = [message["role"] for message in done.json[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert done.err.startswith("chatledger: 2 records converted from sharegpt to openai-chat\n")


def test_messages_stand_where_they_stood_if_that_was_a_list() -> None:
    record = {"a": 1, "traj": talk("x"), "b": 2}
    done = convert("-", "--to", "qwen-agent", given=array(record))
    assert [list(one) for one in done.json] == [["a", "traj", "b"]]


def test_container_stays_what_it_was() -> None:
    for content, begins in ((lines(talk("a"), talk("b")), "[{"), (array(talk("a"), talk("b")), "[\n[{")):
        assert convert("-", "--to", "openai-chat", given=content).out.startswith(begins)
        assert convert("-", "--field", "x", "--to", "openai-chat", given=lines({"x": []})).out == '{"x": []}\n'


@pytest.mark.parametrize("name", ["recipes.sharegpt.json", "advice.tree.jsonl", "fix-greeting.traj", "travel.json"])
def test_to_its_own_format_is_the_file_again(name: str) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)
    own = {"recipes.sharegpt.json": "sharegpt", "advice.tree.jsonl": "oasst", "fix-greeting.traj": "swe-agent"}
    done = convert(SAMPLES / name, "--to", own.get(name, "openai-chat"))
    written = [json.loads(line) for line in done.out.splitlines()] if name.endswith((".jsonl", ".traj")) else done.json
    assert (written if name != "fix-greeting.traj" else written[0]) == records
    assert "lost" not in done.err


@pytest.mark.parametrize("target", format_names())
@pytest.mark.parametrize("file", sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md"))
def test_every_sample_becomes_every_format(file: str, target: str) -> None:
    done = convert(SAMPLES / file, "--to", target, "--losses")
    assert done.code == 0
    assert "failed" not in done.err


def test_losses_are_counted_and_listed() -> None:
    tree = (SAMPLES / "advice.tree.jsonl").read_bytes()
    counted = convert("-", "--to", "openai-chat", given=tree).err
    assert "branch × 2" in counted
    assert "(add --losses to list them)" in counted
    listed = convert("-", "--to", "openai-chat", "--losses", given=tree).err
    assert "chatledger: line 1: branch at branch 1\n" in listed
    assert "(add --losses to list them)" not in listed


def test_carry_keeps_what_is_lost_where_there_is_room() -> None:
    content = array([{**talk("x")[0], "mood": "calm"}])
    plain, carried = (convert("-", "--to", "qwen-agent", *more, given=content) for more in ([], ["--carry"]))
    assert ("calm" in plain.out, "calm" in carried.out) == (False, True)


def test_bad_records_are_reported_and_the_others_converted() -> None:
    done = convert("-", "--to", "kosong", given=lines({"messages": talk("a")}, {"n": 1}, 3) + b"{torn")
    assert (done.code, len(done.out.splitlines())) == (1, 1)
    assert "1 record converted from openai-chat to kosong, 3 records failed" in done.err
    assert "-, line 2" in done.err


def test_a_record_with_nothing_to_write_is_reported(tmp_path: Path) -> None:
    done = convert("-", "--to", "anthropic", given=lines({"messages": [{"role": "system", "content": "Be brief."}]}))
    assert (done.code, done.out) == (1, "")
    assert "-, line 1: nothing to send as 'anthropic', which needs a message of the user or the assistant" in done.err


def test_items_of_responses_go_there_and_back() -> None:
    content = (SAMPLES / "support.jsonl").read_bytes()
    items = convert("-", "--to", "openai-responses", given=content).out.encode()
    named, detected = (
        convert("-", "--from", name, "--to", "openai-chat", given=items) for name in ("openai-responses", "auto")
    )
    assert (named.code, named.out) == (detected.code, detected.out) == (0, named.out)
    assert [len(json.loads(line)["messages"]) for line in named.out.splitlines()] == [
        len(json.loads(line)["messages"]) for line in content.splitlines()
    ]


def test_unknown_names_and_files_fail_and_write_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    for words, said in (
        (("--to", "fax"), "unknown format 'fax'"),
        (("--to", "openai-chat", "--from", "fax"), "unknown format 'fax'"),
        (("--to", "sharegpt"), "cannot write sharegpt"),
    ):
        done = convert(SAMPLES / "travel.json", *words, "-o", out)
        assert (done.code, done.out, out.exists()) == (2, "", False)
        assert said in done.error
    assert "matches no known format" in convert("-", "--to", "kosong", given=lines({"a": 1})).err
    assert convert(tmp_path / "none.json", "--to", "kosong").code == 2


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    done = convert(SAMPLES / "weather.recording.json", "--to", "openai-chat", "-o", tmp_path / "out.json")
    recording = json.loads((SAMPLES / "weather.recording.json").read_text(encoding="utf-8"))
    assert (done.code, done.out) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == recording["interactions"]


def test_formats_are_printed() -> None:
    done = chatledger("formats")
    assert all(name.upper() in done.out for name in format_names())
    assert "oasst, sharegpt, swe-agent" in done.out
    table = chatledger("formats", "--json").json
    assert list(table["formats"]) == format_names()
    assert table["records"] == ["oasst", "sharegpt", "swe-agent"]
