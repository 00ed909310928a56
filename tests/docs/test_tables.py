"""The page of the tables says what the schema is, and says something about every column."""

from __future__ import annotations

import itertools
import re

import pytest

from chatledger.storage.schema.views import VIEWS
from tests.docs.parts import DOCS, in_page
from tests.docs.tables import MADE, PAGE, SHOWN, TABLES, meanings, picture


@pytest.mark.parametrize("name", MADE)
def test_the_page_has_the_columns_types_and_keys(name: str) -> None:
    assert in_page(PAGE, name) == MADE[name](), "run: python -m tests.docs.tables"


@pytest.mark.parametrize("name", MADE)
def test_every_column_has_a_meaning(name: str) -> None:
    assert [column for column, meaning in meanings(name).items() if not re.search(r"[.…]$", meaning)] == []


def test_tables_and_views_have_a_heading_and_a_sentence() -> None:
    text = PAGE.read_text(encoding="utf-8") + (DOCS / "reference" / "views.md").read_text(encoding="utf-8")
    for name in (*VIEWS, *(one.name for one in TABLES)):
        assert re.search(rf"^### {name}\n\n[A-Z].*\.\n\n<!-- (?:made: )?{name} -->", text, re.MULTILINE), name


def test_the_diagram_shows_each_table() -> None:
    assert set(SHOWN) == {one.name for one in TABLES}


def test_no_arrow_of_the_diagram_runs_through_a_table() -> None:
    boxes = [
        tuple(map(int, box)) for box in re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', picture())
    ]
    segments = [segment for path in re.findall(r'<path d="(M.*?)"', picture()) for segment in _segments(path)]
    assert len(segments) > 20
    crossing = [
        (one, box)
        for one in segments
        for box in boxes
        if one[0] < box[0] + box[2] and box[0] < one[2] and one[1] < box[1] + box[3] and box[1] < one[3]
    ]
    assert crossing == []
    upright = sorted(one for one in segments if one[0] == one[2] - 1)
    for one, other in itertools.pairwise(upright):
        assert one[0] != other[0] or one[3] < other[1] or other[3] < one[1], (one, other)


def _segments(path: str) -> list[tuple[int, int, int, int]]:
    """The lines of a path as rectangles one unit wide: left, top, right, bottom."""
    found, (x, y) = [], map(int, re.findall(r"\d+", path)[:2])
    for direction, value in re.findall(r"([HV])(\d+)", path):
        to = (int(value), y) if direction == "H" else (x, int(value))
        found.append(
            (min(x, to[0]), min(y, to[1]), max(x, to[0]) + (direction == "V"), max(y, to[1]) + (direction == "H"))
        )
        x, y = to
    return found
