"""The start of the page runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "adapters" / "langchain.md"


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
def test_the_start_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    start = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(start, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == ["Hello, Ada.", "You are Ada."]
