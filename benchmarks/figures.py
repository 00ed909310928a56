"""The figures that docs/contribute/benchmarks.md holds, read back from its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts import read_part

PART = "figures"
"""The part of the page that a run writes, and of the README that quotes it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of a table; `section` is the part of the run, such as "import"."""

    database: str
    section: str
    case: str
    who: str
    median: str
    ratio: str
    target: str

    @property
    def value(self) -> str:
        """What a target is held against: the ratio, or the median where there is none."""
        return self.ratio.partition(" ")[0] or self.median

    @property
    def shown(self) -> str:
        return f"{self.value} ({self.target})" if self.target else self.value


def figures(page: Path) -> Iterator[Figure]:
    """The rows of the page's tables. A case is named in its first row only."""
    database = section = case = ""
    headings: list[str] = []
    for line in read_part(page, PART).splitlines():
        if line.startswith("### "):
            database, section = place(line.removeprefix("### "))
        elif line.startswith("| case "):
            headings = _cells(line)
        elif line.startswith("| ") and not line.startswith("| ---"):
            row = dict(zip(headings, _cells(line), strict=True))
            case = row["case"] or case
            yield Figure(database, section, case, row["store"], row["median"], row["ratio"], row["target"])


def place(title: str) -> tuple[str, str]:
    """The database and the section that a title names: without the server's version and the disk's speed, which differ
    from run to run.
    """
    database, _, section = title.partition(": ")
    return database.split()[0], section.partition(" (")[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
