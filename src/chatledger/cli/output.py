"""Output: JSON for programs, lines and tables for people. Stored text goes through `escape` first."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chatledger.cli.escape import one_line

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Any) -> None:
    """One JSON value on stdout, in characters that the stream's encoding has."""
    text = json.dumps(value, ensure_ascii=False, default=_plain, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=_plain, indent=2)
    sys.stdout.write(text + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def console(*, stderr: bool = False) -> Console:
    """A console that takes nothing in a text for markup, and adds nothing where nobody looks."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # for `finish`, which ends it as every other output; rich would leave with 1

    return Plain(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be, on a terminal and in a pipe alike."""
    from rich.cells import cell_len, set_cell_size  # a Chinese character is two columns wide

    shown = [[one_line("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(cell_len(row[column]) for row in (list(headings), *shown)) for column in range(len(headings))]
    out = console()
    for number, row in enumerate(([heading.upper() for heading in headings], *shown)):
        cells = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)]
        out.print("  ".join(cells).rstrip(), style=None if number else "bold")


def short(text: str | None, length: int = 60) -> str:
    """The beginning of a text, on one line."""
    words = " ".join((text or "").split())
    return words if len(words) <= length else words[: length - 1] + "…"


def moment(time: datetime | None) -> str:
    return "" if time is None else time.strftime("%Y-%m-%d %H:%M:%S")


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def lost(losses: Mapping[str, int]) -> str:
    """What a format could not express, counted by the codes of `docs/formats/losses.md`."""
    return "lost: " + ", ".join(f"{code} × {count:,}" for code, count in sorted(losses.items()))
