"""A change of a thread, as a follower hears of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model
from chatledger.models.messages import ChatMessage

ThreadChangeKind: TypeAlias = Literal["appended", "grown", "completed", "revised", "retracted", "rewound", "activated"]


class ThreadChange(Model):
    """One change of the active branch of a thread, from `ledger.follow`. A reader that applies the changes in their
    order to the history that it began with always has the history of the active branch.

    - `appended`: `message` follows. It may be partial.
    - `grown`: `message` is still being written, and has more than before: all of it, not only what is new.
    - `completed`: `message` was being written, and is complete now, or interrupted, as its `state` says.
    - `revised`: `message` has other words.
    - `retracted`: the message `message_id` at `seq` was removed, by a retraction or a pop.
    - `rewound`: all messages from `seq` on were removed.
    - `activated`: `branch` is the active branch now. It shares the messages up to `seq` with the branch before; all
      others are gone, and those of the new branch follow as `appended`.

    `message` is the message as it is stored when the change is read. A message that was removed by then is not told any
    more, so a removal may be of a message that the reader never had; a message that grows or is completed may be one
    that the reader left out. `cursor` is an opaque text, safe in a URL: pass it
    on as `after=` to hear of all that follows this change.
    """

    kind: ThreadChangeKind
    cursor: str
    thread_id: str
    branch: int
    seq: int
    message_id: str | None = None
    message: ChatMessage | None = None
