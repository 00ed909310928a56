"""Writes the figures that the README quotes from docs/explanation/benchmarks.md: `python -m benchmarks.readme`.

A test holds the two against each other, so that neither is changed without the other.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.figures import PART, Figure, figures
from benchmarks.parts import write_part

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"
README = ROOT / "README.md"
DATABASES = ("PostgreSQL", "SQLite")
LINES = {
    "append of one turn to 10,000 messages": ("append at 10,000", "chatledger"),
    "append to a thread of 100,000, against an empty thread": (r"growth, [\d,]+ against 0", "chatledger"),
    "load of 1,000 messages": ("load 1,000", "chatledger"),
    "load of the last 50 of the longest thread": (r"last 50 of [\d,]+", "chatledger"),
    "16 writers on threads of their own, turns a second": ("16 writers, own threads", "chatledger"),
    "import of 20,000 messages, messages a second": ("import of 20,000 messages", "chatledger"),
}
"""What each line says, and the case and the contender whose figure stands in it."""


def quoted(page: Path = PAGE) -> str:
    """The table of the README."""
    found = list(figures(page))
    lines = [f"| | {' | '.join(DATABASES)} |", "| --- | --- | --- |"]
    for words, (case, who) in LINES.items():
        cells = (_cell(found, database, case, who) for database in DATABASES)
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(found: list[Figure], database: str, case: str, who: str) -> str:
    """Empty where the page has no such figure: there is no network before a SQLite file."""
    wanted = (one for one in found if (one.database, one.who) == (database, who) and re.fullmatch(case, one.case))
    first = next(wanted, None)
    return "" if first is None else first.shown


if __name__ == "__main__":
    write_part(README, PART, quoted())
