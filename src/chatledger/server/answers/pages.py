"""Pages that end before they grow too large. A page holds at least one item, however large that is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeVar

from chatledger.errors import InvalidCursor, LimitExceeded
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Page
from chatledger.models.json import TooManyValues, at_most_values
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.server.answers.json_response import in_pieces, to_json
from chatledger.server.answers.sizes import LARGEST_MESSAGE
from chatledger.storage.history.sizes import stored_sizes
from chatledger.storage.history.tokens import CountTokens, estimate_tokens
from chatledger.storage.history.window_request import END, Section, Window

LARGEST = 8 * 1024 * 1024
"""Maximum bytes of an answer that has more than one item."""
_DIGITS = 10
_WRITTEN = 12
"""The most bytes that a stored byte takes in JSON in ASCII: as `\\u0000` in the content, and again in the text."""

MOST_VALUES = 100_000
"""About the most JSON values of an answer that has more than one item. As objects of Python they take up to 20 MiB."""
_MANY_VALUES = f"the messages of the answer have more than {MOST_VALUES:,} JSON values; ask for fewer messages"
_AT_ONCE = 8
"""Items of up to 4 MiB that are read at once."""

T = TypeVar("T")


def fitting(sizes: Iterable[int], largest: int = LARGEST) -> int:
    """How many of the items fit into an answer together, the first one always."""
    return max(1, sum(total <= largest for total in accumulate(sizes)))


async def written(items: Sequence[Any]) -> list[int]:
    """The bytes of each item in an answer."""
    return await apart(lambda: [len(to_json(item)) + 1 for item in items], items)


async def fitting_page(read: Callable[..., Awaitable[Page[T]]], limit: int) -> Page[T]:
    """The page of `limit` items, or a shorter one that fits."""
    page = await _few_values(lambda count: read(limit=count), limit)
    count = fitting(await written(page.items))
    return page if count >= len(page.items) else await read(limit=count)


async def _few_values(read: Callable[[int], Awaitable[T]], count: int) -> T:
    """So many items, or half as many until they have few values. One item is read however many it has."""
    while count > 1:
        try:
            with at_most_values(MOST_VALUES):
                return await read(count)
        except TooManyValues:
            count //= 2
    return await read(count)


async def fitting_part(read: Callable[[int, int], Awaitable[Sequence[T]]], limit: int, cursor: str | None) -> Page[T]:
    """The next `limit` items of a list of which `read` returns a part, or fewer. The cursor is the number of items
    before the page.
    """
    start = _start(cursor)
    items: list[T] = []
    size = 0
    with at_most_values(MOST_VALUES):
        while len(items) < limit:
            wanted = min(_AT_ONCE, limit - len(items))
            try:
                part = await read(start + len(items), wanted + 1)
            except TooManyValues:
                break
            for item, bytes_of_item in zip(part, await written(part[:wanted]), strict=False):
                size += bytes_of_item
                if items and size > LARGEST:
                    return Page(items, str(start + len(items)))
                items.append(item)
            if len(part) <= wanted:
                return Page(items)
    if not items:
        first, *more = await read(start, 2)
        return Page([first], str(start + 1) if more else None)
    return Page(items, str(start + len(items)))


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < _DIGITS):
        raise InvalidCursor(cursor)
    return int(cursor)


async def fitting_section(ledger: Ledger, window: Window, *, largest: int = LARGEST) -> Section:
    """The messages of the window, or fewer: those next to its position."""
    scope = scope_of(ledger)
    sizes = [*(await _sizes(ledger, window)).values()]
    forward = not window.is_backward
    count = fitting(sizes if forward else reversed(sizes), largest)

    def read(count: int) -> Awaitable[Section]:
        return scope.history(_cut(window, count) if count < len(sizes) else window)

    section = await _few_values(read, count)
    if sum(sizes) * _WRITTEN <= largest:
        return section
    lengths = await written(section.messages)
    count = fitting(lengths if forward else reversed(lengths), largest)
    return section if count >= len(lengths) else await scope.history(_cut(window, count))


def _cut(window: Window, count: int) -> Window:
    """Exactly so many messages of the window."""
    if not window.is_backward:
        return replace(window, limit=count)
    return replace(window, newest=None, limit=count, before=END if window.before is None else window.before)


async def _sizes(ledger: Ledger, window: Window) -> dict[int, int]:
    return await scope_of(ledger).read(lambda sql: stored_sizes(sql, window), snapshot=True)


@contextmanager
def whole_answer() -> Iterator[None]:
    """Raises LimitExceeded for an answer that no page may cut, and that has too many values."""
    try:
        with at_most_values(MOST_VALUES):
            yield
    except TooManyValues:
        raise LimitExceeded("JSON values of an answer", MOST_VALUES + 1, MOST_VALUES, detail=_MANY_VALUES) from None


async def require_fitting(ledger: Ledger, window: Window) -> None:
    """Raises LimitExceeded for a window that no answer may cut, and that does not fit into one."""
    size = sum((await _sizes(ledger, window)).values())
    if size > LARGEST:
        raise too_large(size)


def counting(most: int = 2 * LARGEST + LARGEST_MESSAGE) -> CountTokens:
    """Counts tokens as the ledger does. Raises LimitExceeded once the messages, of which media cost no tokens, have far
    more bytes than an answer: a window by tokens also reads the turn before its first one.
    """
    size = 0

    def count(message: ChatMessage) -> int:
        nonlocal size
        size += len(to_json(message)) + 1
        if size > most:
            raise too_large(size)
        return estimate_tokens(message)

    return count


async def require_small_answer(answer: Any) -> None:
    """Raises LimitExceeded for an answer that no page may cut."""
    size = await apart(lambda: len(in_pieces(answer)), answer)
    if size > LARGEST + LARGEST_MESSAGE:
        raise too_large(size)


def too_large(size: int) -> LimitExceeded:
    return LimitExceeded("bytes of an answer", size, LARGEST)
