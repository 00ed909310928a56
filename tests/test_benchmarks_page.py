"""The README quotes the measured figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.figures import PART
from benchmarks.parts import read_part, write_part
from benchmarks.readme import PAGE, README, RELIABILITY, quoted


def test_the_readme_quotes_the_page() -> None:
    """After `make bench-full`; `python -m benchmarks.readme` mends it."""
    assert read_part(README, PART).strip() == quoted(PAGE)


def test_every_plot_of_the_page_is_there() -> None:
    names = [line.partition("](")[2].rstrip(")") for line in PAGE.read_text().splitlines() if line.startswith("![")]
    assert names
    assert [name for name in names if not (PAGE.parent / name).is_file()] == []


def test_a_part_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x: make x -->\nold\n<!-- end x -->\nb\n")
    write_part(page, "x", "new\n\nlines")
    assert page.read_text() == "a\n<!-- begin x: make x -->\n\nnew\n\nlines\n\n<!-- end x -->\nb\n"
    write_part(page, "x", "again")
    assert read_part(page, "x").strip() == "again"


def test_a_loss_is_not_quoted(tmp_path: Path) -> None:
    page = tmp_path / "reliability.md"
    page.write_text(RELIABILITY.read_text().replace("| 0 | 0 |\n", "| 1 | 0 |\n"))
    with pytest.raises(LookupError):
        quoted(PAGE, page)
