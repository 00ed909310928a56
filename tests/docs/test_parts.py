"""The parts of the reference that are made when the site is built have their places, and are not tracked."""

from __future__ import annotations

import re

import pytest

from tests.docs.parts import DOCS, filled, made_parts

PAGES = ["command-line", "drafts", "http", "views"]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_a_place_for_each_part_and_the_site_has_the_parts(name: str) -> None:
    page = DOCS / "reference" / f"{name}.md"
    parts = made_parts(f"reference/{name}.md")
    text = page.read_text(encoding="utf-8")
    assert sorted(re.findall(r"^<!-- made: (\w+) -->$", text, re.MULTILINE)) == sorted(parts)
    assert all(f"\n\n{make()}\n" in filled(page) for make in parts.values())
    assert "<!-- made" not in filled(page)


def test_no_other_page_waits_for_a_part() -> None:
    waiting = [page.stem for page in DOCS.rglob("*.md") if "<!-- made: " in page.read_text(encoding="utf-8")]
    assert sorted(waiting) == PAGES
