"""A change of a thread, as `messages.follow` yields it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model
from chatledger.models.messages import ChatMessage
from chatledger.models.windows import Cursor

ThreadChangeKind: TypeAlias = Literal["appended", "grown", "completed", "revised", "retracted", "rewound", "activated"]
"""What happened on the active branch. ThreadChange explains each word."""


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

    A change has the message as it is stored when the change is read. If a message is removed before it is read, only
    the removal is reported. So a removal may be of a message that the reader never had, and a message that grows or is
    completed may be one that the reader left out.
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
    """The position of the message; for `rewound` the first removed position, for `activated` the last shared one."""
    message_id: str | None = None
    """The id of the message; None for `rewound` and `activated`."""
    message: ChatMessage | None = None
    """The message as it is stored now; None for `retracted`, `rewound` and `activated`."""
