"""The page about reliability names every mutant, and has the markers between which `soak.py` writes its figures."""

from __future__ import annotations

from pathlib import Path

from tests.faults.soak import figures_table, mutants_table, put

PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "reliability.md"


def test_the_page_names_every_mutant() -> None:
    assert mutants_table() in PAGE.read_text()


def test_figures_are_put_between_their_markers() -> None:
    page = put(PAGE.read_text(), "figures", figures_table({}))
    assert put(page, "figures", "x").partition("<!-- figures -->")[2].startswith("\nx\n\n<!-- end of figures -->")
