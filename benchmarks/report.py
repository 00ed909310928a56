"""Results as rows, and rows as a table: for the terminal, or in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import Ratio, Sample, Throughput

HEADINGS = ("case", "store", "median", "p95", "spread", "ratio", "target", "")
REACHED, MISSED = "reached", "MISSED"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for a figure: it must be at most, or at least, this value."""

    bound: float
    unit: str = ""
    at_least: bool = False

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}{self.unit}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured of whom; `judged` is what its target is held against."""

    case: str
    who: str
    median: str
    p95: str = ""
    spread: str = ""
    ratio: str = ""
    target: Target | None = None
    judged: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        target = "" if self.target is None else str(self.target)
        return self.case, self.who, self.median, self.p95, self.spread, self.ratio, target, self.mark

    @property
    def mark(self) -> str:
        if self.target is None:
            return ""
        return REACHED if self.target.reached(self.judged) else MISSED


def sample_rows(
    case: str, samples: dict[str, Sample], reference: str, targets: dict[str, Target] | None = None
) -> list[Row]:
    """A row for each contender, with its ratio to the reference."""
    rows = []
    for who, sample in samples.items():
        ratio = sample.ratio(samples[reference])
        rows.append(
            Row(
                case,
                who,
                milliseconds(sample.median),
                milliseconds(sample.percentile(95)),
                f"{sample.spread:.0%}",
                "1" if who == reference else show_ratio(ratio),
                (targets or {}).get(who),
                ratio.value,
            )
        )
    return rows


def throughput_row(case: str, who: str, seen: Throughput, ratio: float | None, target: Target | None) -> Row:
    """Turns a second; the spread is that of the slices."""
    spread = (max(seen.rates) - min(seen.rates)) / seen.rate
    shown = "1" if ratio is None else f"{ratio:.2f}"
    return Row(
        case,
        who,
        f"{seen.rate:,.0f}/s",
        milliseconds(seen.latencies.percentile(95)),
        f"{spread:.0%}",
        shown,
        target,
        ratio or 0.0,
    )


def show_ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.2f} ms" if value < 100 else f"{value:,.0f} ms"


def as_text(title: str, rows: Sequence[Row]) -> str:
    """Aligned columns; a case is named once."""
    cells = [HEADINGS, *_named_once(rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(HEADINGS))]
    lines = ["  ".join(map(_pad, line, widths, range(len(line)))).rstrip() for line in cells]
    return "\n".join(["", title, "=" * len(title), lines[0], "-" * len(lines[0]), *lines[1:]])


def as_markdown(rows: Sequence[Row], *, before: Mapping[tuple[str, str], str] | None = None) -> str:
    """`before` adds a column: what an earlier run gave, by case and store, for the rows that have a target."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *_named_once(rows)]
    if before is not None:
        given = [before.get((row.case, row.who), "") if row.target else "" for row in rows]
        lines = [(*line[:5], cell, *line[5:]) for line, cell in zip(lines, ["before", "---", *given], strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _pad(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if 2 <= column <= 4 else cell.ljust(width)


def _named_once(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    cells, last = [], None
    for row in rows:
        cells.append(("" if row.case == last else row.case, *row.cells[1:]))
        last = row.case
    return cells
