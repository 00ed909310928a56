"""What many messages have in common is one line; --json has each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chatledger.cli.remarks import SHOWN, Remarks
from chatledger.types import Loss, Repair
from tests.cli.commands import chatledger
from tests.transfer.files import lines


def test_equal_losses_are_one_line_with_the_number_of_messages_and_the_first() -> None:
    remarks = Remarks()
    for place in ("line 1", "line 2"):
        for seq in (3, 4):
            remarks.add_losses([Loss("media", seq, f"content[{n}]") for n in range(2)], place)
            remarks.add_losses([Loss("name", seq, "name")], place)
    remarks.add_losses([Loss("state", 9, "state"), Loss("branch", None, "branch 1")], "line 2")
    assert list(remarks.lines()) == [
        "media at content[*] (8 × in 4 messages, first in line 1, message 3)",
        "name (in 4 messages, first in line 1, message 3)",
        "line 2, message 9: state",
        "line 2: branch at branch 1",
    ]
    assert remarks.summary() == "lost: branch × 1, media × 8, name × 4, state × 1"


def test_losses_of_whole_records_count_records() -> None:
    remarks = Remarks()
    for number in range(3):
        remarks.add_losses([Loss("branch", None, "branch 1")], f"line {number}")
    assert list(remarks.lines()) == ["branch at branch 1 (in 3 records, first in line 0)"]


def test_equal_repairs_are_one_line() -> None:
    remarks = Remarks()
    remarks.add_repairs([Repair("custom", 2, "left out"), Repair("custom", 5, "left out"), Repair("empty", 6, "no")])
    assert list(remarks.lines()) == ["left out (custom) (in 2 messages, first in message 2)", "message 6: no (empty)"]
    assert remarks.summary() is None


def test_many_kinds_are_cut_and_counted() -> None:
    remarks = Remarks()
    remarks.add_losses(Loss("repeated-key", None, f"key {n}") for n in range(SHOWN + 3))
    assert len(list(remarks.lines())) == SHOWN + 1
    assert list(remarks.lines())[-1] == "… and 3 more of other kinds"


NAMED: list[dict[str, Any]] = [{"role": "user", "content": f"{n}", "name": "ada"} for n in range(312)]


def test_each_command_says_a_loss_of_many_messages_once_and_json_each(tmp_path: Path) -> None:
    file, url = tmp_path / "in.jsonl", str(tmp_path / "ledger.db")
    file.write_bytes(lines({"id": "t", "messages": NAMED}))
    converted = chatledger("convert", file, "--to", "anthropic", "--losses")
    assert "name (in 312 messages, first in line 1, message 1)" in converted.err
    assert chatledger("import", file, "--thread-field", "id", url=url).code == 0
    for command in ("show", "export"):
        said = chatledger(command, "t", "--format", "anthropic", url=url).err.splitlines()
        assert said == [
            "chatledger: name (in 312 messages, first in message 1)",
            "chatledger: residual (in 312 messages, first in message 1)",
            "chatledger: lost: name × 312, residual × 312",
        ]
    each = chatledger("show", "t", "--format", "anthropic", "--json", url=url).json["losses"]
    assert [(one["code"], one["seq"]) for one in each] == [
        (code, seq) for seq in range(1, 313) for code in ("name", "residual")
    ]


def test_repairs_of_many_messages_are_said_once_and_json_has_each(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps({"id": "t", "messages": NAMED}))
    assert chatledger("import", file, "--thread-field", "id", url=url).code == 0
    words = ("prompt", "t", "--format", "anthropic")
    said = chatledger(*words, url=url).err.splitlines()
    assert said[0] == (
        "chatledger: a second user message in a row: joined with the first (merged) "
        "(in 311 messages, first in message 2)"
    )
    assert len(chatledger(*words, "--json", url=url).json["repairs"]) == 311
