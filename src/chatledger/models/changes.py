"""What happened to a thread: a changed message, a change that is followed, and the record of an erasure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.messages import ChatMessage, ToolCall
from chatledger.models.parts import Part
from chatledger.models.runs import RunStatus
from chatledger.models.windows import Cursor

ChangeKind: TypeAlias = Literal["revised", "retracted", "popped"]
"""How a stored message changed: it was revised, removed by a retraction, or removed by a pop or a rewind."""


class Revision(Model):
    """One change of a stored message. Each change takes a position of its branch, which no message has."""

    kind: ChangeKind
    """How the message changed."""
    message: ChatMessage | None
    """The message as it was before the change. After a redaction it is None, or the redacted message if the change
    removed the message.
    """
    branch: int
    """The branch on which the change took a position."""
    seq: int
    """The position that the change took."""
    created_at: UtcDatetime
    """The time of the change in UTC."""


ThreadChangeKind: TypeAlias = Literal[
    "appended", "grown", "completed", "revised", "retracted", "rewound", "activated", "abandoned", "run"
]
"""What happened on the active branch. ThreadChange explains each word."""


class Piece(Model):
    """What a message that is being written grew by at one place: more text, or a part or a call that begins there."""

    at: str
    """The place: `content` if that is a text, or `content.0`, its first part; so are `reasoning`, `reasoning.0` and
    `tool_calls.0`. The text of a call is its arguments. A content that was a text becomes the first part, or a lone
    part the text, when a piece comes for the other form.
    """
    text: Text = ""
    """The text to add there."""
    signature: Text | None = None
    """The signature that ends the reasoning there."""
    part: Part | None = None
    """A part that begins there, with its words so far."""
    call: ToolCall | None = None
    """A call that begins there, with its arguments so far."""


class ThreadChange(Model):
    """One change of the active branch of a thread, from `messages.follow`. A reader that applies the changes in their
    order to the history that it began with always has the history of the active branch.

    - `appended`: `message` follows. It may be partial.
    - `grown`: `message` is still being written, and is longer than before. It is the whole message, not only the new
      content.
    - `completed`: `message` was being written, and is now complete or interrupted, as its `state` says.
    - `revised`: the content of `message` changed.
    - `retracted`: the message `message_id` at `seq` was removed, by a retraction or a pop.
    - `rewound`: all messages from `seq` on were removed.
    - `activated`: `branch` is the active branch now. It shares the messages up to `seq` with the branch before. Drop
      all later messages; those of the new branch follow as `appended`.

    With `deltas=True` there are two states beside them. A follower tells them once it has told all changes, and no
    position of the branch belongs to them, so a follower that goes on from a cursor may tell one again.

    - `abandoned`: nobody writes the message `message_id` at `seq` any more. The lease of its draft is over.
    - `run`: `run_id` is a run of the branch, and its `status` is new. A follower tells the newest run when it begins,
      then each that a message names, and each change of the eight newest that may still change.

    A change has the message as it is stored when the change is read. If a message is removed before it is read, only
    the removal is reported. So a removal may be of a message that the reader never had, and a message that grows or is
    completed may be one that the reader left out.

    With `deltas=True`, a message that grows or is completed comes in `pieces`: those that follow what the reader has.
    If that is no longer the beginning of the message, as after a restart or a redaction, or if the message has more
    than 200 parts and calls, the whole message comes.
    """

    kind: ThreadChangeKind
    """What happened."""
    cursor: Cursor
    """An opaque text, safe in a URL. Pass it as `cursor=` to continue after this change."""
    thread_id: str
    """The thread that changed."""
    branch: int
    """The active branch."""
    seq: int
    """The position of the message; for `rewound` the first removed position, for `activated` the last shared one, for
    `run` the last one of the branch.
    """
    message_id: str | None = None
    """The id of the message; None for `rewound`, `activated` and `run`."""
    message: ChatMessage | None = None
    """The message as it is stored now; None for `retracted`, `rewound`, `activated`, `abandoned` and `run`. Beside
    pieces it is None while the message grows, and without its content, reasoning and calls when it is completed.
    """
    pieces: list[Piece] | None = None
    """The pieces that the draft added, in order; None where `message` is whole."""
    run_id: str | None = None
    """The run, for `run`."""
    status: RunStatus | Literal["paused"] | None = None
    """Whether that run is running, is an answer that waits for `answers.resume`, or how it ended."""
    waiting: dict[str, str | None] | None = None
    """The calls for which a paused run waited when the change was read: the reason of each, by its id."""


ErasureKind: TypeAlias = Literal["thread", "user", "tenant"]
"""What was erased: one thread, a user, or a tenant."""


class Erasure(Model):
    """A tombstone: the record that something was erased. It holds no content and no id of the erased object."""

    erasure_id: str
    """The id of the tombstone."""
    kind: ErasureKind
    """What was erased."""
    subject: str
    """A digest of the erased id, keyed by a random secret of the tenant. `erasures.find`
    finds the tombstone by it.
    """
    rows: dict[str, int]
    """The number of erased rows by table name."""
    scores: int
    """The number of scores that were kept, as numbers, for `feedback.summary`."""
    created_at: UtcDatetime
    """The time of the erasure in UTC."""

    @property
    def total(self) -> int:
        """The number of erased rows in all tables."""
        return sum(self.rows.values())


class CopyReport(Model):
    """What a pass of `admin.copy` found, and what it wrote into the target."""

    threads: int
    """The number of threads of the source, without those that are left out."""
    copied: int
    """The number of threads that were written, because the target did not have them as the source does."""
    removed: int
    """The number of threads that the target had and the source has no more."""
    rows: dict[str, int]
    """The number of written rows by table name."""
    left_out: dict[str, int]
    """The number of rows, by table name, that a tombstone of either database names: they are neither copied nor
    compared.
    """
    differences: list[str]
    """Where the two databases differ, of a pass that compares them; the first twenty. Empty if they agree."""
    ended: bool
    """Whether the copy is complete: the target is open for all writers."""
