"""Results of reads and writes: pages, histories, and the outcome of an append."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from chatledger.errors import DamagedCell, EncryptionError
from chatledger.models.messages import ChatMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. Iterating over the page iterates over its items."""

    items: list[T]
    """The items in order."""
    next_cursor: str | None = None
    """The text to pass as `cursor=` for the next page; None at the end of the list."""
    damaged: Sequence[DamagedCell | EncryptionError] = ()
    """The errors of the items of this page that cannot be read. `items` does not contain those."""
    complete: bool = True
    """False if a search stopped because it had read as much as one page may, before it found `limit` items. Ask for the
    next page to go on.
    """

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class History:
    """A branch or a window of it, in one consistent state. Iterating over the history iterates over its messages.

    A cursor is None if there are no messages in its direction: at the ends of the branch, or of the run that `run_id`
    chose, and where a window between `after` and `before` reaches one of them. A window by `max_tokens` has no cursors,
    because it may leave out messages in its middle, and neither has a window of size 0.

    To poll for later messages, pass as `after=` the seq of the last message that you have, or 0, and not `next_cursor`,
    which is None once a page reaches the end. A partial message is completed in its place, so poll with
    `partials=False`, or from the seq before it. `messages.follow` does all this.
    """

    thread_id: str
    """The thread."""
    branch: int
    """The branch that was read."""
    messages: list[ChatMessage]
    """The messages in order of seq."""
    version: int
    """The last position of the branch; 0 if it is empty."""
    previous_cursor: int | None = None
    """The seq to pass as `before=` for the messages before the window; None if there are none."""
    next_cursor: int | None = None
    """The seq to pass as `after=` for the messages after the window; None if there are none."""
    mark: str = field(kw_only=True)
    """The state of the branch, wherever the window ends. Pass it as `expected=`, and a write happens only if nobody has
    written to the branch since. An opaque text of 32 characters that are safe in a URL.
    """

    def __iter__(self) -> Iterator[ChatMessage]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a conversion could not express."""

    code: str
    """The kind of the loss, such as `media` or `content-form`. docs/reference/formats/losses.md lists the codes."""
    seq: int | None
    """The position of the message; None for a payload that is read, and for a message that is not stored."""
    path: str
    """The path of the lost value in the message, or in the payload if that was read."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append."""

    first_seq: int
    """The position of the first message of the batch."""
    last_seq: int
    """The position of the last message of the batch."""
    version: int
    """The last position of the branch after the append."""
    messages: list[ChatMessage]
    """The messages as they were stored, with ids, positions and times filled in."""
    replayed: bool = False
    """Whether an earlier call with the same ids had stored the batch. This call then wrote nothing, and the other
    fields are those of the earlier call.
    """
    losses: Sequence[Loss] = ()
    """The values of a payload that lenient rules accepted, and that could not be stored as they came. Only
    `messages.append` reads a payload, so `messages.append` has none.
    """
    mark: str = field(kw_only=True)
    """The state of the branch after the append, to pass as `expected=`. The mark of a replay is already stale if other
    messages followed the first call.
    """


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that a model view made, so that the provider accepts the history."""

    code: str
    """The kind of the repair. docs/guides/model-view.md lists the codes."""
    seq: int | None
    """The position of the message; None for a message that is not stored."""
    detail: str
    """A sentence that says what was changed."""


@dataclass(frozen=True)
class FormattedHistory:
    """A history in a provider's or framework's format."""

    payload: Any
    """The history as the format's own API takes it."""
    messages: list[ChatMessage]
    """The stored messages."""
    version: int
    """The last position of the branch, as in History."""
    mark: str = field(kw_only=True)
    """The state of the branch, as in History."""
    repairs: Sequence[Repair] = field(default=())
    """The changes that a model view made. Empty for the stored view."""
    previous_cursor: int | None = None
    """The seq to pass as `before=` for the messages before the window, as in History."""
    next_cursor: int | None = None
    """The seq to pass as `after=` for the messages after the window, as in History."""
    _find_losses: Callable[[], Sequence[Loss]] = field(default=tuple, kw_only=True, repr=False, compare=False)

    @cached_property
    def losses(self) -> Sequence[Loss]:
        """What the format could not express. Empty for messages that were stored in the same format.

        They are found when they are first read, from the messages as the ledger returned them: a change of the payload
        changes nothing. This takes about twice the time of writing the payload.
        """
        return self._find_losses()  # threads that are first at the same time find the same
