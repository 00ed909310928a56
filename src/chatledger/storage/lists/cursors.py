"""Pages of lists, and their cursors: the sort key of the last item of a page, as an opaque text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from chatledger.arguments import INT, INT_OR_NONE, require
from chatledger.errors import ChatLedgerError, InvalidCursor, LimitExceeded
from chatledger.models import Page
from chatledger.models.json import dumps, loads
from chatledger.storage.lists.bounded import Rows
from chatledger.storage.rows.decode_messages import is_damage
from chatledger.storage.schema.columns import Undecoded
from chatledger.storage.schema.text import from_microseconds, to_microseconds

T = TypeVar("T")

MAX_PAGE = 1_000
_MOST = 2**31 - 1


def part_of(skip: int, limit: int | None) -> slice:
    """The part of a list. Raises InvalidArgument for what is no number, and LimitExceeded for one below zero."""
    require(INT, skip=skip)
    require(INT_OR_NONE, limit=limit)
    for name, number in (("skip", skip), ("limit", limit or 0)):
        if not 0 <= number <= _MOST:
            raise LimitExceeded(name, number, _MOST)
    return slice(skip, None if limit is None else skip + limit)


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


def to_page(rows: Rows, read: Callable[[Any], T], *key: str, of: str = "") -> Page[T]:
    """The page of the rows. `read` makes an item of a row, and `key` are the columns of the cursor. `of` names the
    order of a list that has several; it stands first in the cursor.

    The error of a damaged row goes into the page. It is raised if the row's place in the list is damaged too.
    """
    items, damaged = rows.aside(lambda: _read_rows(rows.rows, read))
    if not rows.more:
        return Page(items, None, damaged)
    place = [rows.rows[-1][name] for name in key]
    if any(isinstance(value, Undecoded) for value in place):
        raise damaged[-1]
    return Page(items, write_cursor(*([of] if of else []), *place), damaged)


def _read_rows(rows: Iterable[Any], read: Callable[[Any], T]) -> tuple[list[T], list[Any]]:
    items: list[T] = []
    damaged: list[Any] = []
    for row in rows:
        try:
            items.append(read(row))
        except ChatLedgerError as error:
            if not is_damage(error):
                raise
            damaged.append(error)
    return items, damaged


def page_size(limit: int) -> int:
    """The limit. Raises LimitExceeded unless it is 1 to 1,000."""
    if not 1 <= limit <= MAX_PAGE:
        raise LimitExceeded("limit", limit, MAX_PAGE, minimum=1)
    return limit
