"""docs/benchmarks.md: the tables of a run, and a plot for each database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import Outcome
from benchmarks.plot import Line, draw
from benchmarks.report import as_markdown

_HEAD = """# What it costs

Written by `make bench-full`; `make bench` prints a shorter run. Each figure is a median of calls that took turns within
one run, beside stores written by hand on the bare driver with the same tables, keys and indexes; `ratio` compares
medians, with the lowest and highest of five stretches of the run in brackets. Everything is durable: `fsync` and
`synchronous_commit` on, `synchronous = FULL`. One turn is a question, two calls, their results and the answer: five
messages, 2.7 kB of text. The bare stores judge nothing, remember nothing of repeats and take rows as they are;
chatledger takes and gives models, mints ids, finds repeats and keeps the rules.
"""


def write_page(path: Path, machine: str, outcomes: Sequence[Outcome]) -> None:
    """The page at `path`, its plots beside it."""
    parts = [_HEAD, f"Measured on: {machine}.\n"]
    for outcome in outcomes:
        name = f"{path.stem}-{outcome.title.split()[0].lower()}.svg"
        (path.parent / name).write_text(draw(f"{outcome.title.split(',')[0]}: append of one turn", _lines(outcome)))
        parts += [
            f"## {outcome.title}\n",
            f"![Append by length of the thread]({name})\n",
            as_markdown(outcome.rows),
            "",
        ]
    path.write_text("\n".join(parts))


def _lines(outcome: Outcome) -> list[Line]:
    return [
        Line(who, [(length, sample.median * 1000) for length, sample in own.items()])
        for who, own in outcome.growth.items()
    ]
