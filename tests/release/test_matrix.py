"""The matrix knows what ran on what: a row of the page proves a cell only for the state that it ran on."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from release.cut import NotReady, require_matrix
from release.matrix import WHOLE, Cell, Missing, Result

from release import matrix

CELL = Cell("3.12", "16")
PASSED = Result(CELL, "3.12.1", "16.14", "3.45.0", WHOLE, "4870 passed", "2030-01-01", "abc")
PROJECT = """[project]
version = "{}"
dependencies = ["a[b]>=1.2", "c>=0.9,<1"]
optional-dependencies = {{ dev = ["chatledger[cli]"], cli = ["d>={}"] }}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that `release.matrix` takes for its own."""
    for name, own in (("ROOT", tmp_path), ("KEPT", tmp_path / ".matrix"), ("PAGE", tmp_path / "support.md")):
        monkeypatch.setattr(matrix, name, own)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format("1", "3"))
    (tmp_path / "constraints.txt").write_text("a==2\npytest==9\nx==1\n")
    (tmp_path / "support.md").write_text(f"Above.\n\n{matrix.BEGIN}\n{matrix.END}\n\nBelow.\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    return tmp_path


def test_there_are_fourteen_pairs_and_five_environments() -> None:
    names = [cell.name for cell in matrix.cells()]
    assert len(set(names)) == 19
    assert {"3.11-15", "3.13-18", "3.11-15-lowest", "3.13-18-newest"} <= set(names)
    environments = ["3.11-sqlite", "3.12-sqlite", "3.13-sqlite", "3.11-sqlite-lowest", "3.13-sqlite-newest"]
    assert [name for name in names if "sqlite" in name] == environments


def test_the_page_has_a_row_for_each_cell() -> None:
    page = matrix.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\|(3\.[^|]+)", page, re.MULTILINE) == [cell.name for cell in matrix.cells()]
    assert [matrix.row_of(result) in page for result in matrix.read_page().values()] == [True] * 19


def test_the_hash_is_of_what_a_cell_runs_on(tree: Path) -> None:
    first = matrix.hash_of_tree()
    (tree / "pyproject.toml").write_text(PROJECT.format("2", "3"))
    (tree / "README.md").write_text("new")
    (tree / "src" / "__pycache__").write_text("new")
    assert matrix.hash_of_tree() == first
    hashes = {first}
    for name, text in (
        ("pyproject.toml", PROJECT.format("2", "4")),
        ("constraints.txt", "a==3\n"),
        ("src/a.py", "2"),
        ("src/b.py", "1"),
    ):
        (tree / name).write_text(text)
        hashes.add(matrix.hash_of_tree())
    assert len(hashes) == 5


def test_a_result_is_read_as_it_was_written(tree: Path) -> None:
    part = Result(
        Cell("3.13", "18", "newest"), "3.13.0", "18.4", "3.46.0", "tests/models", "1 failed, 2 passed", "x", "d"
    )
    matrix.write_page(Result(CELL, hash="older"))
    matrix.write_page(part)
    matrix.write_page(PASSED)
    page = matrix.read_page()
    assert (page[CELL], page[part.cell], page[Cell("3.11", "15")]) == (PASSED, part, Result(Cell("3.11", "15")))
    text = (tree / "support.md").read_text()
    assert (text.startswith("Above."), text.endswith("\n\nBelow.\n"), text.count("not run")) == (True, True, 17)
    assert len(matrix.unproved("abc")) == 18


@pytest.mark.parametrize(
    ("tests", "outcome", "hash_", "proves"),
    [
        (WHOLE, "9 passed", "abc", True),
        (WHOLE, "9 passed", "abd", False),
        (WHOLE, "1 failed, 8 passed", "abc", False),
        ("tests/models", "9 passed", "abc", False),
        (WHOLE, "", "abc", False),
    ],
)
def test_a_cell_is_proved_by_all_its_tests_on_the_hash(tests: str, outcome: str, hash_: str, proves: bool) -> None:
    assert Result(CELL, tests=tests, outcome=outcome, hash=hash_).proves("abc") is proves


def test_a_cell_that_passed_is_not_run_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Cell] = []

    def run_cell(cell: Cell, _: Sequence[str]) -> Result:
        ran.append(cell)
        return Result(cell, tests=WHOLE, outcome="4870 passed")

    monkeypatch.setattr(matrix, "run_cell", run_cell)
    assert [matrix.run([CELL]), matrix.run([CELL])] == [0, 0]
    (tree / "src" / "a.py").write_text("2")
    assert matrix.run([CELL]) == 0
    assert ran == [CELL, CELL]


def test_what_cannot_run_is_named_with_its_reason(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tree))
    monkeypatch.setenv("PYENV_ROOT", str(tree))
    with pytest.raises(Missing, match=r"no Python 3\.12 on PATH or under pyenv"):
        matrix.interpreter("3.12")
    with pytest.raises(Missing, match="no npm"):
        matrix.server("16")

    def run_cell(cell: Cell, _: Sequence[str]) -> Result:
        if cell == CELL:
            raise Missing("no npm")
        return Result(cell, tests=WHOLE, outcome="1 failed, 8 passed")

    monkeypatch.setattr(matrix, "run_cell", run_cell)
    monkeypatch.setattr(matrix, "hash_of_tree", lambda: "abc")
    assert matrix.run([CELL, Cell("3.12", "17")]) == 1
    assert capsys.readouterr().err == "missing: 3.12-16: no npm\nmissing: 3.12-17: 1 failed, 8 passed\n"


def test_the_lowest_versions_are_those_of_the_ranges(tree: Path) -> None:
    assert matrix.constraints("lowest", ["", "cli"]) == ["a==1.2", "c==0.9", "d==3", "pytest==9"]
    assert matrix.constraints("pinned", [""]) == ["a==2", "pytest==9", "x==1"]
    assert matrix.constraints("newest", [""]) == []


def test_a_release_wants_every_cell_of_its_own_hash(tree: Path) -> None:
    def run(cells: Sequence[Cell]) -> int:
        for cell in cells:
            matrix.write_page(Result(cell, tests=WHOLE, outcome="9 passed", hash=matrix.hash_of_tree()))
        return 0

    with pytest.raises(NotReady, match="19 of 19 cells"):
        require_matrix(lambda cells: 1)
    with pytest.raises(NotReady, match="commit it"):
        require_matrix(run)
    require_matrix(lambda cells: pytest.fail("it ran again"))
    (tree / "src" / "a.py").write_text("2")
    with pytest.raises(NotReady, match="commit it"):
        require_matrix(run)
