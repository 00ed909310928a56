"""The sample of docs/guides/adapters/index.md runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "adapters" / "index.md"


def test_one_thread_in_two_frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (sample,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(compile(sample, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == [
        "human How cold is Oslo? ",
        "ai  [{'name': 'weather', 'args': {'city': 'Oslo'}, 'id': 'c1', 'type': 'tool_call'}]",
        "tool 4 degrees ",
        "ai It is 4 degrees. []",
        "{'role': 'user', 'content': 'And Bergen?'}",
        "['user', 'assistant', 'tool', 'assistant', 'user']",
    ]
