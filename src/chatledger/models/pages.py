"""Results of reads and writes: pages, histories, and the outcome of an append."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from chatledger.errors import DamagedCell, EncryptionError
from chatledger.models.messages import ChatMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in order, and the cursor that continues after them; None at the end.

    `damaged` are the errors of the items that cannot be read: they belong to the page, and stand nowhere in `items`.
    """

    items: list[T]
    next_cursor: str | None = None
    damaged: Sequence[DamagedCell | EncryptionError] = ()

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class History:
    """One consistent state of a branch, or a window of it, in order of seq.

    `version` is the last seq of the branch. The cursors name the neighbours of the window, however it was read:
    `before=previous_cursor` reads the messages before it, and `after=next_cursor` those after it. A cursor is None if
    there is nothing to read there: at the ends of the branch, or of the run that `run_id` chose, and where a window
    between `after` and `before` reaches one of them. A window by `max_tokens` has no cursors, because it may leave out
    messages in its middle, and neither has a window of size 0.

    To poll for later messages, pass as `after=` the seq of the last message that you have, or 0. `next_cursor` is None
    as soon as a page reaches the end. A partial message is completed in its place, so poll with `partials=False`, or
    from the seq before it.
    """

    thread_id: str
    branch: int
    messages: list[ChatMessage]
    version: int
    previous_cursor: int | None = None
    next_cursor: int | None = None

    def __iter__(self) -> Iterator[ChatMessage]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a conversion could not express: the kind, the seq of the message, and the path in it.

    A loss of a payload that was read, and not written, has no seq: its path begins at the payload.
    """

    code: str
    seq: int | None
    path: str


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: the batch with ids, positions and times filled in.

    `replayed`: an earlier call with the same ids stored all of it, and this call wrote nothing. The other fields are
    then those of the earlier call.

    `losses` are those of a payload that lenient rules let in: the values that could not be stored as they came. Only
    `ledger.append` reads a payload, so an append of messages has none.
    """

    first_seq: int
    last_seq: int
    version: int
    messages: list[ChatMessage]
    replayed: bool = False
    losses: Sequence[Loss] = ()


@dataclass(frozen=True, slots=True)
class Repair:
    """A change by a model view, so that the provider accepts the history: kind, seq of the stored message, sentence."""

    code: str
    seq: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class FormattedHistory:
    """A history in another format. The format's own API accepts the `payload`.

    `messages` are the stored messages, and the cursors are those of their `History`. Only a model view has `repairs`.
    """

    payload: Any
    messages: list[ChatMessage]
    version: int
    losses: Sequence[Loss] = field(default=())
    repairs: Sequence[Repair] = field(default=())
    previous_cursor: int | None = None
    next_cursor: int | None = None
