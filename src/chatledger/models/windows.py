"""Windows: which messages of a branch a call reads. Each checks itself when it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import NewType, TypeAlias

from chatledger.arguments import FUNCTION_OR_NONE, INT, Kind, require
from chatledger.errors import LimitExceeded
from chatledger.models.messages import ChatMessage

MOST = 2**62

Mark = NewType("Mark", str)
"""The state of a branch, as a history or an append gave it. `Mark(header)` makes one of a text that a client sent."""
Cursor = NewType("Cursor", str)
"""How far a reader is, as a call gave it. It contains the branch, so a page never continues on another one."""
Position: TypeAlias = Cursor | Mark | int
"""Where a window begins or ends: the cursor of a page, a mark (the end of the branch at that time), or, only together
with `branch=`, a seq.
"""
_POSITION = Kind("a cursor, a mark or a seq; a message has .seq", str, int, NoneType)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest messages, at the end or before a position. If the window would begin inside a group (a call with its
    results, or messages that were one in their source), it begins with the group.
    """

    count: int
    """How many messages."""
    before: Position | None = None
    """Where the window ends; None: at the end of the branch."""

    def __post_init__(self) -> None:
        _require_size("count", self.count)
        require(_POSITION, before=self.before)


@dataclass(frozen=True, slots=True)
class Oldest:
    """The first messages, from the beginning or after a position: exactly that many, so such a page may begin between a
    call and its result.
    """

    count: int
    """How many messages."""
    after: Position | None = None
    """Where the window begins; None: at the beginning of the branch."""

    def __post_init__(self) -> None:
        _require_size("count", self.count)
        require(_POSITION, after=self.after)


@dataclass(frozen=True, slots=True)
class Turns:
    """The newest turns. A turn is a user message, and everything up to the next one."""

    count: int
    """How many turns."""

    def __post_init__(self) -> None:
        _require_size("count", self.count)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The system and developer messages that the branch begins with, and the newest whole turns that fit with them."""

    budget: int
    """How many tokens they may have together."""
    count: Callable[[ChatMessage], int] | None = None
    """Returns the tokens of a message; it may be called in another thread. The default divides the characters of texts
    and calls by four, rounded up, and counts nothing for media. Custom messages, which no model gets, are not counted.
    """

    def __post_init__(self) -> None:
        _require_size("budget", self.budget)
        require(FUNCTION_OR_NONE, count=self.count)


Window: TypeAlias = Newest | Oldest | Turns | Tokens
"""Which part of a branch a history or a prompt reads."""


def _require_size(name: str, size: int) -> None:
    require(INT, **{name: size})
    if not 0 <= size <= MOST:
        raise LimitExceeded(name, size, MOST)
