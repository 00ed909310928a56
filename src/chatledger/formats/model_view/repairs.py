"""The repairs that a model view can report: the codes, and the list that one view keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from chatledger.models import ChatMessage, Repair

CUSTOM = "custom"  # left out: it is for the screen
PARTIAL = "partial"  # left out: it is still being written, or was abandoned
ROLE = "role"  # a role that the provider does not know is written as user, a field of another role left out
REASONING = "reasoning"  # left out: the provider did not sign it
MEDIA = "media"  # a medium that the provider does not take is left out
NAME = "name"  # a name that the provider does not take is respelled, that of a speaker left out
ARGUMENTS = "arguments"  # written as the JSON text that the provider asks for
OPEN_CALL = "open-call"  # answered by a synthetic result
MOVED_RESULT = "moved-result"  # placed directly behind its call
ORPHAN_RESULT = "orphan-result"  # it answers no call: told as a user's text, or left out if it says nothing
DOUBLED_RESULT = "doubled-result"  # left out: its call is answered already
CALL_ID = "call-id"  # an id that the provider does not take is replaced
REUSED_ID = "reused-id"  # an id that stands on an earlier call is replaced
SYSTEM = "system"  # hoisted before the conversation
EMPTY = "empty"  # nothing that the provider takes is left in it: left out, or written as empty text
SPACE = "space"  # white space at the end of the last message is left out
MERGED = "merged"  # joined with the message before it, which has the same role


@dataclass(slots=True)
class RepairLog:
    repairs: list[Repair] = field(default_factory=list)

    def add(self, code: str, message: ChatMessage, detail: str) -> None:
        self.repairs.append(Repair(code, message.seq, detail))

    def in_order(self) -> list[Repair]:
        """By message; those that came from nowhere stored at the end."""
        return sorted(self.repairs, key=lambda one: (one.seq is None, one.seq or 0))
