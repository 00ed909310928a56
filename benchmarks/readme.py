"""Writes the figures that the README quotes from docs/contribute/benchmarks.md: `python -m benchmarks.readme`.

A test holds the two against each other, so that neither is changed without the other.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Literal

from benchmarks.figures import PART, Figure, figures
from benchmarks.parts import write_part

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "contribute" / "benchmarks.md"
README = ROOT / "README.md"
RELIABILITY = ROOT / "docs" / "contribute" / "reliability.md"
_ALL = re.compile(r"\| \*\*all\*\* \| [\d,]+ \| ([\d,]+) \| [\d,]+ \| \d+ \| 0 \| 0 \| 0 \| 0 \|")


def quoted(page: Path = PAGE, reliability: Path = RELIABILITY) -> str:
    """The paragraph of the README. Raises LookupError if a figure is missing, or if a proof found a loss."""
    found = list(figures(page))
    append, first, load = "append at 1,000,000", "first append to a rested thread", "load 1,000"
    faultless = _ALL.search(reliability.read_text(encoding="utf-8"))
    if faultless is None:
        raise LookupError("the reliability page says that something was lost, doubled or reordered")
    return textwrap.fill(
        f"Storing a turn of five messages, durably, takes {_both(found, append, 'median')}, in a thread of a million"
        f" messages as in an empty one. A process's first write to a thread takes {_both(found, first, 'median')}. A"
        " store written by hand on the bare driver checks nothing and builds no models: it appends in"
        f" {_both(found, append, 'share')} of our time, and loads 1,000 messages in {_both(found, load, 'share')}."
        f" In the last hour of injected faults, {faultless[1]} appends were acknowledged: none was lost, doubled or"
        " reordered.",
        120,
        break_on_hyphens=False,
    )


def _both(found: list[Figure], case: str, what: Literal["median", "share"]) -> str:
    """What a case took on PostgreSQL, and on SQLite; `share` is the bare driver's part of our time."""
    words = []
    for database in ("PostgreSQL", "SQLite"):
        ours = next(one for one in found if (one.database, one.case, one.who) == (database, case, "chatledger"))
        amount = ours.median if what == "median" else f"{1 / float(ours.value):.1f}"
        words.append(f"{amount} ({database})")
    return " and ".join(words)


if __name__ == "__main__":
    write_part(README, PART, quoted())
