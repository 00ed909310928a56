"""Output: JSON for programs, and tables for people. Tables escape stored text."""

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
    """Print a JSON value. If the encoding of stdout lacks a character, all non-ASCII characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, default=_plain, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=_plain, indent=2)
    sys.stdout.write(text + "\n")


def print_list(items: Sequence[Any], next_cursor: str | None = None, **more: Any) -> None:
    """Print a list as JSON, in the one shape that all commands have: `items` and `next_cursor`."""
    print_json({"items": list(items), "next_cursor": next_cursor, **more})


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def console(*, stderr: bool = False) -> Console:
    """A console that does not interpret text as markup, and writes plain text to a pipe."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # `finish` handles it; rich would exit with 1

    return Plain(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns as wide as their content, on a terminal and in a pipe."""
    from rich.cells import cell_len, set_cell_size  # these count a Chinese character as two columns

    shown = [[one_line("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(cell_len(row[column]) for row in (list(headings), *shown)) for column in range(len(headings))]
    out = console()
    for number, row in enumerate(([heading.upper() for heading in headings], *shown)):
        cells = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)]
        out.print("  ".join(cells).rstrip(), style=None if number else "bold")


def short(text: str | None, length: int = 60) -> str:
    """The text on one line, truncated to `length` characters."""
    words = " ".join((text or "").split())
    return words if len(words) <= length else words[: length - 1] + "…"


def moment(time: datetime | None) -> str:
    return "" if time is None else time.strftime("%Y-%m-%d %H:%M:%S")


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def lost(losses: Mapping[str, int]) -> str:
    """A line with the number of losses by code; `docs/reference/formats/losses.md` explains the codes."""
    return "lost: " + ", ".join(f"{code} × {count:,}" for code, count in sorted(losses.items()))
