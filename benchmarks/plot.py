"""A line chart as SVG: messages in the thread (logarithmic, with a place for 0) against milliseconds.

Colours come from a style sheet inside the file, with a second set for dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 44, 44
_STYLE = """
text { font: 13px sans-serif; fill: #333 } .title { font-weight: bold } .grid { stroke: #ddd } path { fill: none }
.c0 { stroke: #1b6ca8 } .c1 { stroke: #8a6d3b } .c2 { stroke: #5b8c5a } .c3 { stroke: #b0413e }
.line { stroke-width: 2 } .end { stroke: none; text-anchor: start }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """(messages in the thread, milliseconds) of one contender."""

    name: str
    points: Sequence[tuple[int, float]]


def draw(title: str, lines: Sequence[Line]) -> str:
    lengths = sorted({length for line in lines for length, _ in line.points})
    top = _round_up(max(value for line in lines for _, value in line.points))
    body = [f'<text class="title" x="{LEFT}" y="22">{escape(title)}, ms by messages in the thread</text>']
    body += [_level(value, top) for value in (0, top / 4, top / 2, top * 3 / 4, top)]
    body += [_tick(length, lengths) for length in lengths]
    labels = _apart([_y(line.points[-1][1], top) for line in lines])
    for number, (line, label) in enumerate(zip(lines, labels, strict=True)):
        body.append(_path(line, number, lengths, top))
        body.append(f'<text x="{WIDTH - RIGHT + 10}" y="{label + 4:.0f}">{escape(line.name)}</text>')
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f"<svg {box}>\n<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n"


def _x(length: int, lengths: Sequence[int]) -> float:
    """0 stands a decade before the shortest thread that holds anything."""
    shortest = math.log10(min((one for one in lengths if one), default=10))
    span = max(math.log10(max(lengths) or 10) - shortest + 1, 1)
    at = 0.0 if length == 0 else (math.log10(length) - shortest + 1) / span
    return LEFT + at * (WIDTH - LEFT - RIGHT)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def _level(value: float, top: float) -> str:
    y = _y(value, top)
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'


def _tick(length: int, lengths: Sequence[int]) -> str:
    return f'<text x="{_x(length, lengths):.1f}" y="{HEIGHT - BOTTOM + 22}" text-anchor="middle">{length:,}</text>'


def _path(line: Line, number: int, lengths: Sequence[int], top: float) -> str:
    places = [f"{_x(length, lengths):.1f} {_y(value, top):.1f}" for length, value in line.points]
    dots = "".join(f"M{place} h0.1" for place in places)
    shape = f'<path class="line c{number % 4}" d="M{" L".join(places)}"/>'
    return f'{shape}<path class="c{number % 4}" stroke-width="7" stroke-linecap="round" d="{dots}"/>'


def _apart(heights: Sequence[float]) -> list[float]:
    """Label heights, moved down where two would overlap."""
    placed = dict[int, float]()
    last = -math.inf
    for index in sorted(range(len(heights)), key=heights.__getitem__):
        last = placed[index] = max(heights[index], last + 16)
    return [placed[index] for index in range(len(heights))]


def _round_up(value: float) -> float:
    """A round number that is not much above."""
    scale: float = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10) if step * scale >= value)
