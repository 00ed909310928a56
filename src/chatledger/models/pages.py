"""Results of reads and writes: pages, histories, hits, drafts that are open, and the outcome of an append."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from chatledger.errors import DamagedCell, EncryptionError, InvalidArgument
from chatledger.models.base import Model, UtcDatetime
from chatledger.models.messages import ChatMessage
from chatledger.models.windows import Mark

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

    messages: list[ChatMessage]
    """The messages as they were stored, with ids, positions and times filled in."""
    mark: Mark
    """The state of the branch after the append, to pass as `expected=`. The mark of a replay is already stale if other
    messages followed the first call.
    """
    last_seq: int
    """The last position of the branch after the append."""
    replayed: bool = False
    """Whether an earlier call with the same ids had stored the batch. This call then wrote nothing, and the other
    fields are those of the earlier call.
    """
    losses: Sequence[Loss] = ()
    """The values of a `Payload` that lenient rules accepted, and that could not be stored as they came."""

    @property
    def message(self) -> ChatMessage:
        """The last message of the batch: the usual append has one. Raises InvalidArgument for an empty batch."""
        if not self.messages:
            raise InvalidArgument("messages", "is an empty batch, which has no message")
        return self.messages[-1]


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
class Encoded:
    """Messages in a provider's or framework's format."""

    payload: Any
    """The messages as the format's own API takes them."""
    _find_losses: Callable[[], Sequence[Loss]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def losses(self) -> Sequence[Loss]:
        """What the format could not express. Empty for messages that were stored in the same format.

        They are found when they are first read, from the messages as the ledger returned them: a change of the payload
        changes nothing. This takes about twice the time of writing the payload.
        """
        return self._find_losses()  # threads that are first at the same time find the same


HitField: TypeAlias = Literal["text", "result", "tool_name", "arguments", "title"]
"""Where a hit was found: the text of a message, the text of a tool's result, the name of a called tool, the arguments
of a call, or the title of a thread.
"""


class Hit(Model):
    """A message, or the title of a thread, that a search found, and the words around the match."""

    thread_id: str
    """The thread."""
    title: str | None = None
    """The title of the thread."""
    branch: int | None = None
    """The branch that stores the message. None for a hit in a title."""
    seq: int | None = None
    """The position of the message on the active branch. None for a hit in a title."""
    message_id: str | None = None
    """The id of the message, if it has one."""
    role: str | None = None
    """The role of the message. None for a hit in a title."""
    created_at: UtcDatetime
    """The time of the message; for a hit in a title, the time at which the thread was created."""
    field: HitField
    """Where the match is. A message with several matches is one hit, of the first match."""
    before: str
    """Up to 40 characters before the match, as they are stored."""
    match: str
    """The match, as it is stored: with its own case, width and blanks."""
    after: str
    """Up to 40 characters after the match, as they are stored."""

    @property
    def snippet(self) -> str:
        """The match with the words around it."""
        return self.before + self.match + self.after


class OpenDraft(Model):
    """The place of a message that is still being written, or was abandoned by its writer."""

    thread_id: str
    """The thread of the message."""
    branch: int
    """The branch that the message ends."""
    seq: int
    """The position of the message."""
    message_id: str | None
    """The id of the message."""
    run_id: str | None
    """The run of the message, if it has one."""
    created_at: UtcDatetime
    """The time of the message in UTC."""
    since: UtcDatetime
    """The time of the last write of the message, in UTC."""
