"""The commands of docs/import.md run, and print what stands below them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.commands import chatledger

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")


def test_commands_run_and_print_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for command, shown in re.findall(r"^\$ chatledger (.*)\n((?:(?!\$).*\n)*)", "".join(blocks), re.MULTILINE):
        done = chatledger(*shlex.split(command), url="page.db", cwd=tmp_path)
        assert (done.code, command) == (0, command)
        assert not shown or done.out == shown
    assert (tmp_path / "advice.jsonl").read_text(encoding="utf-8").startswith('{"message_tree_id"')
    assert (tmp_path / "train.jsonl").read_text(encoding="utf-8") == ""
