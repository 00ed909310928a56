"""The figures on docs/contribute/benchmarks.md: the tables of a run, with a plot for each line and database.

Each figure with a target stands beside the one that the page held for it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import Growth, Outcome
from benchmarks.figures import PART, figures, place
from benchmarks.parts import write_part
from benchmarks.plot import Line, draw
from benchmarks.report import as_markdown


def write_page(page: Path, machine: str, outcomes: Sequence[Outcome], *, full: bool) -> None:
    """The part `figures` of the page, and the plots beside it."""
    before: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for one in figures(page):
        before.setdefault((one.database, one.section), {})[one.case, one.who] = one.value
    run = "The full run" if full else "The short run, on threads of up to 10,000 messages"
    parts = [f"{run}. Measured on: {machine}."]
    for outcome in outcomes:
        parts.append(f"### {outcome.title}")
        parts += [_plot(page, outcome.title, name, growth) for name, growth in outcome.plots.items()]
        parts.append(as_markdown(outcome.rows, before=before.get(place(outcome.title), {})))
    write_part(page, PART, "\n\n".join(parts))


def _plot(page: Path, title: str, name: str, growth: Growth) -> str:
    """Draws it, and gives the line that shows it."""
    database = title.partition(":")[0]
    words = "-".join(name.replace(",", "").lower().split())
    path = page.parent / f"{page.stem}-{database.split()[0].lower()}-{words}.svg"
    path.write_text(draw(f"{database}, {name}", _lines(growth)), encoding="utf-8")
    return f"![{name}, by messages in the thread]({path.name})"


def _lines(growth: Growth) -> list[Line]:
    return [
        Line(who, [(length, sample.median * 1000) for length, sample in own.items()]) for who, own in growth.items()
    ]
