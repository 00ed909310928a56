"""Cursors of lists: the sort key of the last item of a page, as an opaque text."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from chatledger.errors import InvalidCursor, LimitExceeded
from chatledger.models.json import dumps, loads
from chatledger.storage.schema.text import from_microseconds, to_microseconds

MAX_PAGE = 1_000


def write_cursor(*values: datetime | str) -> str:
    plain = [to_microseconds(value) if isinstance(value, datetime) else value for value in values]
    text = dumps(plain).encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """The values of a cursor that `write_cursor` wrote. Raises InvalidCursor for any other text."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = loads(base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8", "surrogatepass"))
        if not isinstance(values, list) or len(values) != len(kinds):
            raise ValueError("not the values of this list")
        return [_read(value, kind) for value, kind in zip(values, kinds, strict=True)]
    except (ValueError, OverflowError, RecursionError, AttributeError, TypeError) as error:
        raise InvalidCursor(cursor) from error


def _read(value: Any, kind: type) -> Any:
    if kind is datetime and type(value) is int:
        return from_microseconds(value)
    if kind is str and isinstance(value, str):
        return value
    raise ValueError("not the values of this list")


def page_size(limit: int) -> int:
    """The limit. Raises LimitExceeded unless it is 1 to 1,000."""
    if not 1 <= limit <= MAX_PAGE:
        raise LimitExceeded("limit", limit, MAX_PAGE, minimum=1)
    return limit
