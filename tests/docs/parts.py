"""Parts of pages: those that a program writes into a page, and those that are made when the site is built.

A page that is tracked with its part has it between `<!-- name -->` and `<!-- end name -->`. A part that is not tracked
is a line `<!-- made: name -->`, which `filled` replaces: the site, the tests and the counts see the page with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_MADE = re.compile(r"^<!-- made: (\w+) -->$", re.MULTILINE)


def in_page(page: Path, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- end name -->`."""
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end {name} -->", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"{page.name} has no marks {name!r}"
    return found[1]


def write_into_page(page: Path, made: Mapping[str, Callable[[], str]]) -> None:
    """Write what the functions return between the marks of their names."""
    for name, make in made.items():
        text = page.read_text(encoding="utf-8")
        begin, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end {name} -->"
        before, after = text.index(begin) + len(begin), text.index(end)
        page.write_text(text[:before] + make() + text[after:], encoding="utf-8")


def made_parts(path: str) -> Mapping[str, Callable[[], str]]:
    """The parts of a page, by its path below docs, that are made when the site is built."""
    from tests.docs import command_line, drafts, http, tables

    parts: dict[str, Mapping[str, Callable[[], str]]] = {
        "reference/command-line.md": command_line.TABLES,
        "reference/drafts.md": drafts.TABLES,
        "reference/http.md": http.TABLES,
        "reference/views.md": tables.MADE_VIEWS,
    }
    return parts.get(path, {})


@cache
def _part(path: str, name: str) -> str:
    return made_parts(path)[name]()


def fill(path: str, text: str) -> str:
    """The text of a page with its made parts."""
    return _MADE.sub(lambda found: _part(path, found[1]), text)


def filled(page: Path) -> str:
    """A page as the site has it."""
    text = page.read_text(encoding="utf-8")
    return fill(page.relative_to(DOCS).as_posix(), text) if page.is_relative_to(DOCS) else text
