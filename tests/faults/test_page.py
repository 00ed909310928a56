"""The page about reliability names every tooth, and its marks are where the long form writes between."""

from __future__ import annotations

from pathlib import Path

from tests.faults.soak import figures_table, put, teeth_table
from tests.faults.teeth import TEETH

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def test_the_page_names_every_tooth() -> None:
    assert teeth_table() in PAGE.read_text()
    assert len({tooth.name for tooth in TEETH}) == len(TEETH)


def test_figures_are_put_between_their_marks() -> None:
    page = put(PAGE.read_text(), "figures", figures_table({}))
    assert put(page, "figures", "x").partition("<!-- figures -->")[2].startswith("\nx\n<!-- end of figures -->")
