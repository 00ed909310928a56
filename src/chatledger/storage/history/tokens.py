"""The part of a branch that fits into `max_tokens`: the leading instructions and the newest whole turns.

The branch is read backward, a page at a time and in one snapshot, until a turn does not fit. So it reads the returned
turns plus one, however long the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import TypeAlias

from chatledger.errors import InvalidArgument, LimitExceeded
from chatledger.models import ChatMessage, OpaquePart, TextPart, ThinkPart
from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import Path, load_path
from chatledger.storage.history.row_sizes import fitting, sizes_between
from chatledger.storage.history.window_request import Window

CountTokens: TypeAlias = Callable[[ChatMessage], int]
"""Returns the number of tokens of a message. It may be called in another thread."""

PAGE = 100
"""Messages in the first page. Each further page is twice as large, up to `LARGEST`."""
LARGEST = 1_600
BYTES = 8 * 1024 * 1024
"""About the bytes of a page of more than one message."""
_FEW = 8
"""Messages in a page while the leading instructions are read."""
_CHARACTERS = 4


def estimate_tokens(message: ChatMessage) -> int:
    """The characters of the texts, the reasoning, and the names and arguments of calls, divided by four, rounded up.

    This is a rule of thumb for English prose; other scripts take more tokens. Media count as nothing, because the bytes
    of an image do not show its cost. If the number matters, pass the model's own counter.
    """
    characters = sum(map(len, _texts(message)))
    return -(-characters // _CHARACTERS)


def _texts(message: ChatMessage) -> Iterator[str]:
    for value in (message.content, message.reasoning):
        if isinstance(value, str):
            yield value
        for part in value if isinstance(value, list) else ():
            if isinstance(part, (TextPart, ThinkPart)):
                yield part.text
            elif isinstance(part, OpaquePart):
                yield dumps(part.value)
    for call in message.tool_calls or ():
        yield call.name
        yield call.arguments if isinstance(call.arguments, str) else dumps(call.arguments or {})


def newest_that_fit(
    sql: ReadSql, window: Window, path: Path, starts_window: Callable[[ChatMessage], bool]
) -> list[ChatMessage]:
    """The leading system and developer messages and the newest turns that fit into `max_tokens` together.

    `starts_window` tells whether everything before a message may be left out. Raises LimitExceeded if the newest turn
    does not fit: a part of a turn makes no sense, and the caller asked for no more tokens.
    """
    maximum, count = window.max_tokens or 0, window.count_tokens or estimate_tokens
    leading, first = _leading(sql, window, path)
    used = sum(_cost(message, count) for message in leading)
    if used > maximum:
        raise _too_large("the leading instructions of the branch", used, maximum)
    turns: list[ChatMessage] = []
    turn: list[ChatMessage] = []
    for message in _backward(sql, window, path, first):
        turn.append(message)
        used += _cost(message, count)
        if used > maximum:  # before the turn is read to its beginning, which may be far back
            if turns:
                break
            raise _too_large("the newest turn with the leading instructions", used, maximum)
        if starts_window(message):
            turns += turn
            turn = []
    else:
        turns += turn  # the beginning of the branch
    return [*leading, *reversed(turns)]


def _too_large(what: str, used: int, maximum: int) -> LimitExceeded:
    """The error for an instruction or a turn that does not fit. `used` is the count so far."""
    detail = f"{maximum:,} tokens are too few: at least {used:,} are needed for {what}"
    return LimitExceeded("tokens", used, maximum, detail=detail)


def _cost(message: ChatMessage, count: CountTokens) -> int:
    """The tokens of a message. A custom message costs nothing, because no model gets it."""
    cost = 0 if message.role == "custom" else count(message)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not cost >= 0:  # `not …` refuses NaN as well
        raise InvalidArgument("count_tokens", f"must return a number of at least 0, but returned {cost!r:.60}")
    return cost


def _leading(sql: ReadSql, window: Window, path: Path) -> tuple[list[ChatMessage], int]:
    """The instructions at the beginning of the branch, and the seq after them. Custom messages, which are for the
    screen, may stand among them.
    """
    instructions: list[ChatMessage] = []
    first, size = 1, _FEW
    while first <= path.last_seq:
        last = fitting(sizes_between(sql, window, path, first, first + size - 1).items(), BYTES) or first + size - 1
        page = load_path(sql, window, path, first, last)
        run = list(takewhile(lambda message: message.role in ("system", "developer", "custom"), page))
        instructions += run
        if len(run) < len(page):
            break
        first, size = last + 1, size if page else min(2 * size, LARGEST)  # past positions without a message
    while instructions and instructions[-1].role == "custom":
        instructions.pop()
    return instructions, (instructions[-1].seq or 0) + 1 if instructions else 1


def _backward(sql: ReadSql, window: Window, path: Path, first: int) -> Iterator[ChatMessage]:
    """The messages from the last one back to `first`."""
    last, size = path.last_seq, PAGE
    while last >= first:
        low = max(first, last - size + 1)
        low = fitting(reversed(sizes_between(sql, window, path, low, last).items()), BYTES) or low
        yield from reversed(load_path(sql, window, path, low, last))
        last, size = low - 1, min(2 * size, LARGEST)
