"""The interface of a shape: it locates the conversation in a record, and decodes and encodes it.

    encode(decode(payload).branches).payload == payload, including key order

A shape is pure: it knows neither files nor the ledger. `locate` finds the conversation in a record, and
`transfer.envelope` takes it out in the same way for all shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chatledger.formats import Codec
from chatledger.formats.losses.measure import measure, write
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Location


@dataclass(frozen=True, slots=True)
class BranchMessages:
    """The messages of one branch. Each branch but the first begins after message `at` of its `parent`, an earlier
    branch.
    """

    messages: list[ChatMessage]
    parent: int = 0
    at: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A decoded conversation. `sources` are the source objects of the messages, branch by branch; empty if some message
    is not one object.
    """

    branches: list[BranchMessages]
    losses: Sequence[Loss] = ()
    sources: Sequence[JsonValue] = field(default=())

    @property
    def count(self) -> int:
        return sum(len(branch.messages) for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Measured:
    """A payload or a record, and the values that it cannot express. A file is always written with a count of these."""

    payload: JsonValue
    losses: Sequence[Loss] = ()


def measured(codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> Measured:
    """The messages in a format."""
    written = write(codec, messages, carry=carry)
    return Measured(written.payload, measure(codec, messages, written, carry=carry))


def list_alone(written: Measured, key: str) -> Measured:
    """Replace a payload that is an object with only this key by the key's list."""
    payload = written.payload
    is_alone = isinstance(payload, dict) and list(payload) == [key]
    return Measured(payload[key], written.losses) if is_alone else written


class Shape(Protocol):
    """One shape. `name` is its name for `--format`. If `branching`, a record may hold several branches."""

    @property
    def name(self) -> str: ...

    @property
    def branching(self) -> bool: ...

    def recognises(self, record: JsonValue) -> bool:
        """Whether the record certainly has this shape."""
        ...

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        """The location of the conversation, in `fieldname` or else in the usual field. Raises DecodeError if the
        record has no such field.
        """
        ...

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        """The record's own id, a text, if it always has one. Else the part by which an earlier release identified a
        record without an id field.
        """
        ...

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        """Raises DecodeError with a path that begins with the key of the payload."""
        ...

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        """The payload of these branches, from any format. Never raises.

        With `alone`, the payload becomes the value of a single key, even if the shape can write several keys.
        """
        ...
