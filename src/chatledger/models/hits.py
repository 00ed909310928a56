"""What a search finds."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime

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
