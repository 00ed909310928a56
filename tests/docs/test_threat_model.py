"""Each line of the threat model names a test, and the test exists."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.parts import DOCS

PAGE = DOCS / "explanation" / "threat-model.md"
TESTS = (DOCS / "contribute" / "threats.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TESTS)
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| (?!---)", line)]


@pytest.mark.parametrize(("path", "name"), NAMED, ids="::".join)
def test_a_named_test_exists(path: str, name: str) -> None:
    tree = ast.parse((DOCS.parent / path).read_text(encoding="utf-8"))
    found = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in found if name else any(one.startswith("test_") for one in found)


def test_a_line_that_promises_something_names_a_test() -> None:
    assert len(ROWS) > 15
    for row in ROWS:
        _, who, _, cannot, _ = [cell.strip() for cell in row.split("|")]
        heads = cannot in ("cannot", "does not tell")
        assert heads or bool(cannot) == (f"\n| {who} | `tests/" in TESTS), row
