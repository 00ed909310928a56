"""One line of a context file: the JSON of a row in some writer's style."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from chatledger.models.json import JsonValue, dumps

STYLE, TEXT, BEFORE, END, AFTER = "style", "text", "before", "end", "after"
"""What the residual may say of a line: its style, or else its text; blank lines before and after it; its ending."""

SURROGATE = re.compile("[\ud800-\udfff]")


def _compact(row: JsonValue) -> str:
    """As Pydantic writes. Lone surrogates, which have no UTF-8, are escaped even where they would pair up."""
    text = dumps(row)
    return STYLES["ascii"](row) if SURROGATE.search(text) else text


STYLES: dict[str, Callable[[JsonValue], str]] = {
    "compact": _compact,
    "spaced": json.dumps,
    "ascii": partial(json.dumps, separators=(",", ":")),
    "unicode": partial(json.dumps, ensure_ascii=False),
}


def split(line: bytes) -> tuple[str, str]:
    """The text of a line and its ending. Bytes that are not UTF-8 become lone surrogates, and bytes again by
    `line_of`."""
    text = line.decode("utf-8", "surrogateescape")
    body = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    return body, text[len(body) :]


def style_of(text: str, row: JsonValue, default: str) -> dict[str, str]:
    """The style in which the row is written as this text, nothing for the default; the text itself if in none."""
    for style in (default, *STYLES):
        if STYLES[style](row) == text:
            return {} if style == default else {STYLE: style}
    return {TEXT: text}


def line_of(row: JsonValue, residual: Any, default: str) -> bytes:
    """The line as it was read, or in the default style."""
    told = residual if isinstance(residual, dict) else {}
    text = told.get(TEXT) or STYLES.get(told.get(STYLE, default), STYLES[default])(row)
    line = f"{told.get(BEFORE, '')}{text}{told.get(END, chr(10))}{told.get(AFTER, '')}"
    return line.encode("utf-8", "surrogateescape")
