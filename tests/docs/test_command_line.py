"""The page of the command line says what the commands do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.commands import chatledger
from tests.docs.command_line import commands
from tests.docs.parts import DOCS, ROOT

PAGE = DOCS / "reference" / "command-line.md"


def test_the_json_of_each_command_is_on_the_page() -> None:
    printing = {words for words, command, _ in commands() if any("--json" in one.opts for one in command.params)}
    assert printing == {*re.findall(r"`(.*?)`", " ".join(_first_cells()))}


def _first_cells() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").partition("## JSON output")[2].partition("\n## ")[0]
    return re.findall(r"^\| (`.*?) \| ", section, re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [
        "schema",
        "import",
        "formats",
        "threads",
        "search tokyo",
        "show weather",
        "prompt weather",
        "check",
        "drafts",
        "backup",
    ],
)
def test_the_json_has_the_keys_of_the_page(command: str, tmp_path: Path) -> None:
    record = tmp_path / "weather.json"
    record.write_text('{"id": "weather", "messages": [{"role": "user", "content": "Tokyo?"}]}', encoding="utf-8")
    importing = ("import", record, "--thread-field", "id", "--json")
    imported = chatledger(*importing, url="chat.db", cwd=tmp_path)
    words = [*command.split(), *(["copy.db"] if command == "backup" else [])]
    outcome = imported if command == "import" else chatledger(*words, "--json", url="chat.db", cwd=tmp_path)
    assert list(outcome.json) == _keys(command.split()[0])


def _keys(command: str) -> list[str]:
    """The keys of the outermost object that the page shows for a command."""
    section = PAGE.read_text(encoding="utf-8").partition("## JSON output")[2]
    (row,) = [line for line in section.splitlines() if re.match(rf"\| .*`{command}`.* \| ", line)]
    shape = row.split(" | ", 1)[1]
    shape = shape[shape.index("{") + 1 :]
    depth, outer = 0, ""
    for character in shape:
        depth += (character in "{[") - (character in "}]")
        if depth < 0:
            break
        outer += character if depth == 0 else ""
    return re.findall(r'"(\w+)"', outer)


def test_the_repository_names_no_command_that_is_not_there() -> None:
    known = {words.split()[0] for words, _, _ in commands()}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        blocks = re.findall(
            r"^\$ chatledger (?:--keys \S+ )?([a-z]\S*)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(blocks) <= known, page.name
