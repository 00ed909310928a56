"""A history as calls return it, and what it is in a format: as it is stored, or as a provider accepts it.

Storage and formats do not import each other; they meet here. A format's module is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, TypeAlias

from chatledger.arguments import BOOL, STR, Kind, require
from chatledger.models import ChatMessage, Cursor, Encoded, Mark, Repair
from chatledger.storage.history.window_request import Section, write_position

PromptFormat: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]
"""The formats that a provider stands behind."""
_OBJECTS = Kind("'models', 'dicts' or None", NoneType, words=("models", "dicts"))


@dataclass(frozen=True, slots=True)
class History:
    """A branch or a window of it, in one consistent state. Iterating over the history iterates over its messages.

    A cursor is None if there are no messages in its direction: at the ends of the branch, or of the run that `run_id`
    chose. A window by `Tokens` has no cursors, because it may leave out messages in its middle, and neither has a
    window of size 0. To poll for later messages, pass `Oldest(count, after=history.mark)`.
    """

    thread_id: str
    """The thread."""
    branch: int
    """The branch that was read."""
    messages: list[ChatMessage]
    """The finished messages, in order of seq."""
    draft: ChatMessage | None
    """The message at the end of the branch that is being written, or was abandoned, if the window reaches it. A page
    that does not show it hides the beginning of an answer.
    """
    mark: Mark
    """The state of the branch, wherever the window ends. Pass it as `expected=`, and a write happens only if nobody has
    written to the branch since; as `cursor=` to follow what comes; or as `after=` to read it. An opaque text of 32
    characters that are safe in a URL.
    """
    last_seq: int
    """The last position of the branch, that of a draft included; 0 if it is empty."""
    previous_cursor: Cursor | None = None
    """Where the messages before the window end: `Newest(count, before=history.previous_cursor)`. None if there are
    none.
    """
    next_cursor: Cursor | None = None
    """Where the messages after the window begin: `Oldest(count, after=history.next_cursor)`; None if there are none."""

    def encode(
        self,
        format: str,  # noqa: A002 - the word of the tables and of the command line
        *,
        as_: Literal["models", "dicts"] | None = None,
        carry: bool = False,
    ) -> Encoded:
        """The messages in a provider's or framework's format, without I/O. `.payload` is what its own API takes.

            payload = (await ledger.messages.history(thread_id)).encode("langchain").payload

        Messages that were stored in the same format come back as they were. For all others, `.losses` lists what the
        format cannot express; `carry=True` keeps that in a free slot of the format, if it has one. `as_` chooses the
        format's objects ("models") or dicts ("dicts"); the default is the one that the messages came in as. For the
        model itself, `messages.prompt` returns what its provider accepts.

        Raises UnknownFormat, and EncodeError for objects that the format does not have or that cannot hold a value.
        """
        require(STR, format=format)
        require(_OBJECTS, as_=as_)
        require(BOOL, carry=carry)
        from chatledger.formats.history import encode

        return encode(format, self.messages, kind=as_, carry=carry)

    def __iter__(self) -> Iterator[ChatMessage]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a provider accepts as the messages of a request."""

    payload: Any
    """The messages, in the provider's format. Without the draft."""
    repairs: Sequence[Repair]
    """The changes that were made, so that the provider accepts the history."""
    history: History
    """The stored messages that it was made of."""


def with_draft(history: History) -> list[ChatMessage]:
    """The messages and the draft, for what shows or copies a branch as it is."""
    return history.messages if history.draft is None else [*history.messages, history.draft]


def history_of(section: Section) -> History:
    """The section as calls return it."""
    thread, branch = section.thread, section.branch
    return History(
        section.thread_id,
        branch,
        section.messages,
        section.draft,
        section.mark,
        section.last_seq,
        None if section.before is None else write_position(thread, branch, section.before),
        None if section.after is None else write_position(thread, branch, section.after),
    )
