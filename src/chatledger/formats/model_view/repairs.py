"""The repairs that a model view can report: their codes, the log of one view, and the copy that a repair makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chatledger.models import ChatMessage, Repair
from chatledger.models.base import copy_with

CUSTOM = "custom"  # left out: it is for display only
PARTIAL = "partial"  # left out: it is incomplete
ROLE = "role"  # an unknown role is written as user, a field of another role is left out
REASONING = "reasoning"  # left out: the provider did not sign it
MEDIA = "media"  # left out: the provider does not accept the medium
NAME = "name"  # a refused name of a tool is respelled, a refused name of a speaker is left out
ARGUMENTS = "arguments"  # written as the type that the provider requires
OPEN_CALL = "open-call"  # answered by a synthetic result
MOVED_RESULT = "moved-result"  # moved directly behind its call
ORPHAN_RESULT = "orphan-result"  # it answers no call: written as a user message, or left out if it is empty
DOUBLED_RESULT = "doubled-result"  # left out: its call already has a result
CALL_ID = "call-id"  # an id that the provider refuses is replaced
REUSED_ID = "reused-id"  # an id that an earlier call has is replaced
SYSTEM = "system"  # moved before the conversation
EMPTY = "empty"  # it holds nothing that the provider accepts: left out, or written as empty text
SPACE = "space"  # white space at the end of the last message is left out
KEYS = "keys"  # a key that a request may not have is left out
MERGED = "merged"  # joined with the message before it, which has the same role


@dataclass(slots=True)
class RepairLog:
    repairs: list[Repair] = field(default_factory=list)

    def add(self, code: str, message: ChatMessage, detail: str) -> None:
        self.repairs.append(Repair(code, message.seq, detail))

    def in_order(self) -> list[Repair]:
        """Sorted by message; repairs of messages that are not stored come last."""
        return sorted(self.repairs, key=lambda repair: (repair.seq is None, repair.seq or 0))


def rewritten(message: ChatMessage, **fields: Any) -> ChatMessage:
    """A changed copy without the residual, which described the old shape.

    It keeps its format, so its signatures remain valid.
    """
    return copy_with(message, {**fields, "residual": None})
