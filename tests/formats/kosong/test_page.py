"""The examples of the format's page run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "formats" / "kosong.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=["messages", "context file"])
def test_an_example_of_the_page_runs(example: str) -> None:
    exec(compile(example, str(PAGE), "exec"), {})
