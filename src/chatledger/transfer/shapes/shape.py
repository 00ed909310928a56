"""What a shape of records is to import and export: where the conversation stands in a record, and what it says there.

    encode(decode(payload).branches).payload == payload, value by value with key order

A shape is pure, and knows nothing of files or of the ledger. What it takes out of a record and what it leaves there is
said by `locate`; `transfer.envelope` does it for all shapes alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chatledger.formats import Encoded
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Location


@dataclass(frozen=True, slots=True)
class BranchMessages:
    """The messages of one branch. All but the first begin after message `at` of an earlier branch, their `parent`."""

    messages: list[ChatMessage]
    parent: int = 0
    at: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """`sources` are the objects that the messages were read from, branch after branch, where each was one object."""

    branches: list[BranchMessages]
    losses: Sequence[Loss] = ()
    sources: Sequence[JsonValue] = field(default=())

    @property
    def count(self) -> int:
        return sum(len(branch.messages) for branch in self.branches)


class Shape(Protocol):
    """One shape. `name` is what `--format` takes; `branching`: a record may hold more than one branch."""

    @property
    def name(self) -> str: ...

    @property
    def branching(self) -> bool: ...

    def recognises(self, record: JsonValue) -> bool:
        """Whether the record surely has this shape."""
        ...

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        """Where the conversation stands; `fieldname` is where the user says. Raises DecodeError if it is not there."""
        ...

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        """What makes it this record and no other, where no field with an id was named."""
        ...

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        """Raises DecodeError with the path into the payload, which begins with the key that it came from."""
        ...

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Encoded:
        """The payload of these branches, of any origin. Never raises. `alone`: it is to be the value of one key, where
        the shape knows an object of keys as well.
        """
        ...
