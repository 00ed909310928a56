"""Plots as SVG, drawn on the server. Their colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal

WIDTH, HEIGHT = 640, 180
_LEFT, _TOP, _BOTTOM = 48, 10, 22


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A bar, or a point of a line."""

    x: float
    y: float
    width: float
    height: float
    series: int
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A value for each day, in one or more series."""

    title: str
    days: Sequence[date]
    series: Mapping[str, Sequence[float | None]]
    kind: str
    marks: Sequence[PlotMark]
    lines: Sequence[tuple[int, str]]
    """The lines between points: the number of the series, and the points as SVG has them."""
    ticks: Sequence[tuple[float, str]]
    """The heights of the scale, and their labels."""

    @property
    def is_empty(self) -> bool:
        return not any(value for values in self.series.values() for value in values) and self.kind == "bars"

    @property
    def rows(self) -> list[tuple[date, list[float | None]]]:
        """The days that have a value, newest first."""
        rows = [(day, [values[at] for values in self.series.values()]) for at, day in enumerate(self.days)]
        return [row for row in reversed(rows) if any(value is not None for value in row[1])]

    @property
    def labels(self) -> list[tuple[float, str, str]]:
        """The first, the middle and the last day under the plot: where, how the text stands there, and the text."""
        middle = len(self.days) // 2
        places = ((_LEFT, "start", 0), (self._centre(middle, len(self.days)), "middle", middle), (WIDTH, "end", -1))
        return [(x, anchor, f"{self.days[at]:%d %b}") for x, anchor, at in places]

    @staticmethod
    def _centre(at: int, count: int) -> float:
        return round(_LEFT + (at + 0.5) * (WIDTH - _LEFT) / count, 1)

    @classmethod
    def bars(
        cls, title: str, days: Sequence[date], series: Mapping[str, Sequence[float | None]], *, stacked: bool = True
    ) -> Plot:
        sums = [[_finite(values[at]) or 0 for values in series.values()] for at in range(len(days))]
        top = _round_up(max((sum(values) if stacked else max(values) for values in sums), default=0))
        step = (WIDTH - _LEFT) / len(days)
        marks = []
        for at, values in enumerate(sums):
            base = 0.0
            for number, (name, value) in enumerate(zip(series, values, strict=True)):
                if value:
                    height = value / top * (HEIGHT - _TOP - _BOTTOM)
                    y = HEIGHT - _BOTTOM - base - height
                    label = f"{days[at]}: {name} {_number(value)}"
                    marks.append(
                        PlotMark(
                            round(_LEFT + at * step + 1, 1),
                            round(y, 1),
                            round(step - 2, 1),
                            round(height, 1),
                            number,
                            label,
                        )
                    )
                    base += height if stacked else 0
        return cls(title, days, series, "bars", marks, [], _ticks(0, top))

    @classmethod
    def line(cls, title: str, days: Sequence[date], series: Mapping[str, Sequence[float | None]]) -> Plot:
        drawn = {name: [_finite(value) for value in values] for name, values in series.items()}
        known = [value for values in drawn.values() for value in values if value is not None]
        low, high = min([0, *known]), max([0, *known])
        top, bottom = _round_up(high), -_round_up(-low) if low < 0 else 0.0
        marks, lines = [], []
        for number, (name, values) in enumerate(drawn.items()):
            points = []
            for at, value in enumerate(values):
                if value is not None:
                    x, y = cls._centre(at, len(days)), _height(value, bottom, top)
                    points.append(f"{x},{y}")
                    marks.append(PlotMark(x, y, 0, 0, number, f"{days[at]}: {name} {_number(value)}"))
            lines.append((number, " ".join(points)))
        return cls(title, days, series, "line", marks, lines, _ticks(bottom, top))


def _height(value: float, bottom: float, top: float) -> float:
    size = max(top, -bottom)  # the difference of the ends alone may be infinite
    part = (top / size - value / size) / (top / size - bottom / size)
    return round(_TOP + part * (HEIGHT - _TOP - _BOTTOM), 1)


def _ticks(bottom: float, top: float) -> list[tuple[float, str]]:
    return [(_height(value, bottom, top), _number(value)) for value in (bottom, (bottom + top) / 2, top)]


def _finite(value: float | None) -> float | None:
    """The value, if a plot has a place for it. The table under the plot has all values."""
    return value if value is not None and math.isfinite(value) else None


def _round_up(value: float) -> float:
    """The next number of one significant digit, for the end of a scale; 1 for nothing. The largest floats stay."""
    if value <= 0:
        return 1
    exact = Decimal(str(value))  # 10 ** -324 would be 0, and 2 * 10 ** 308 no float
    rounded = float(exact.quantize(Decimal(1).scaleb(exact.adjusted()), ROUND_CEILING))
    return rounded if math.isfinite(rounded) else value


def _number(value: float) -> str:
    if abs(value) >= 1e15:
        return f"{value:.4g}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"
