"""What a machine can count about the documentation: its words, what stands twice, what a reader must get past.

`budget.toml` has the most that each count may be. `python -m tests.docs.budget` prints the counts beside it.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.docs.llms import navigation
from tests.docs.parts import DOCS, filled

BUDGET: Mapping[str, Mapping[str, int]] = tomllib.loads(
    Path(__file__).with_name("budget.toml").read_text(encoding="utf-8")
)
RUN = 9
"""Words in a row that stand on two pages are a copy."""
LONG = 30
"""Words of a sentence that is too long."""
BEGINNING = 60
"""Words of a guide before its first code."""

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(r"\d ?(?:ms|µs|kB|%)(?!\w)|\btimes as (?:long|many)\b")


@cache
def in_navigation() -> Sequence[Path]:
    return [DOCS / path for _, _, path in navigation()]


def to_read() -> Sequence[Path]:
    """The pages that one reads, and does not look things up in."""
    return [page for page in in_navigation() if not page.is_relative_to(DOCS / "reference")]


def contributors() -> Sequence[Path]:
    return sorted((DOCS / "contribute").glob("*.md"))


def by_hand(page: Path) -> str:
    """The text of a page without what is made for it."""
    return re.sub(r"<!-- (?:begin )?(\w+).*?<!-- end.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def prose(page: Path) -> str:
    """Without code blocks, tables, headings and comments."""
    lines = _FENCE.sub("", by_hand(page)).splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*(?:\||#|<!--|:::|    )", line))


def words() -> int:
    return sum(len(filled(page).split()) for page in in_navigation())


def tokens() -> int:
    """Words with a letter or a digit: a table has a fifth more of the others."""
    return sum(bool(re.search(r"\w", word)) for page in in_navigation() for word in filled(page).split())


def contributors_words() -> int:
    return sum(len(by_hand(page).split()) for page in contributors())


def largest() -> int:
    return max(len(filled(page).split()) for page in to_read())


def in_tables() -> int:
    """Of a hundred words to read, those in tables."""
    tables = sum(len(line.split()) for page in to_read() for line in filled(page).splitlines() if line.startswith("|"))
    return round(100 * tables / sum(len(filled(page).split()) for page in to_read()))


def late_code() -> int:
    """Guides with more words before their first code."""
    texts = [page.read_text(encoding="utf-8") for page in to_read() if page.is_relative_to(DOCS / "guides")]
    return sum(len(text.partition("```")[0].split()) > BEGINNING for text in texts if "```" in text)


def copies() -> int:
    """Runs of words that stand on two pages or more."""
    pages: dict[tuple[str, ...], set[Path]] = defaultdict(set)
    for page in in_navigation():
        said = re.findall(r"[\w`.']+", _FENCE.sub("", by_hand(page)))
        for start in range(len(said) - RUN + 1):
            pages[tuple(said[start : start + RUN])].add(page)
    return sum(len(on) > 1 for on in pages.values())


def figures() -> int:
    """Measured figures outside the page of costs."""
    pages = [page for page in to_read() if page.name != "costs.md"]
    return sum(len(_FIGURE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))) for page in pages)


def inner_names() -> int:
    """Files of tests and targets of the repository, which a user does not have."""
    return sum(
        len(re.findall(r"`(?:tests/|make (?:test|soak|mutants|bench))", by_hand(page))) for page in in_navigation()
    )


def long_sentences() -> int:
    return sum(len(sentence.split()) > LONG for page in in_navigation() for sentence in _sentences(prose(page)))


def _sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", text):
        yield from re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[])", " ".join(paragraph.split()))


def far_pages() -> int:
    """Pages that the home page does not reach by two links."""
    near = {DOCS / "index.md"}
    for _ in range(2):
        near |= {link for page in near for link in _links(page)}
    return len(set(in_navigation()) - near)


def _links(page: Path) -> Iterator[Path]:
    if page.suffix == ".md":
        for target in re.findall(r"\]\(([^)#\s:]+\.md)", page.read_text(encoding="utf-8")):
            yield (page.parent / target).resolve()


COUNTS: Mapping[str, Callable[[], int]] = {
    "words": words,
    "tokens": tokens,
    "contributors_words": contributors_words,
    "largest": largest,
    "in_tables": in_tables,
    "late_code": late_code,
    "copies": copies,
    "figures": figures,
    "inner_names": inner_names,
    "long_sentences": long_sentences,
    "far_pages": far_pages,
}


def places(fact: str) -> list[str]:
    """The pages to read, and the reference by hand, that say it."""
    pages = (page for page in in_navigation() if "api" not in page.parts)
    return [page.relative_to(DOCS).as_posix() for page in pages if re.search(fact, by_hand(page))]


if __name__ == "__main__":
    for name, count in COUNTS.items():
        print(f"{name:20} {count():7,} of {BUDGET['most'][name]:,}")
    for fact, most in BUDGET["places"].items():
        print(f"{fact:40} {len(places(fact)):3} of {most}: {' '.join(places(fact))}")
