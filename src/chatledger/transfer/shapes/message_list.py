"""Records that are a message list or hold one in a field, in any format whose payload is a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats import Codec
from chatledger.formats.wire.fields import kind_of
from chatledger.models import RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Location, locate_in
from chatledger.transfer.fields import FieldMissing, find_path, find_value, require_path
from chatledger.transfer.shapes.requests import request_path, spoken_by
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Measured, list_alone, measured

DEFAULT_FIELD = "messages"


@dataclass(frozen=True, slots=True)
class MessageList:
    """Messages in the format of `codec`. An object may hold one message or several."""

    codec: Codec
    branching: bool = False

    @property
    def name(self) -> str:
        return self.codec.name

    def recognises(self, record: JsonValue) -> bool:
        return self.recognised_field(record) is not None

    def recognised_field(self, record: JsonValue) -> str | None:
        """The field that holds messages of the format; empty if the record itself is the list of messages; None if
        there is no such field.
        """
        if isinstance(record, list):
            return "" if self.codec.recognises(record) else None
        if not isinstance(record, dict) or spoken_by(record) not in (None, self.name):
            return None
        names = [_default_field(record), *(name for name, value in record.items() if isinstance(value, list))]
        return next((name for name in names if self.codec.recognises(find_value(record, name))), None)

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        if isinstance(record, list) and fieldname is None:
            return Location()
        if not isinstance(record, dict):
            raise FieldMissing("", f"an object with a message list is expected, not {kind_of(record)}")
        name = fieldname or _default_field(record)
        if fieldname is None and find_path(record, name) is None:
            name = self.recognised_field(record) or DEFAULT_FIELD
        path = require_path(record, name)
        return locate_in(record, path, [DEFAULT_FIELD])

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        """The messages, since other keys may change. For a recorded request the whole record, since requests repeat
        each other's messages.
        """
        return record if request_path(record) else payload

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        decoded = self.codec.decode(payload, rules=rules)
        one_each = isinstance(payload, list) and len(payload) == len(decoded.messages)
        return Conversation([BranchMessages(decoded.messages)], decoded.losses, payload if one_each else ())

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        return list_alone(measured(self.codec, branches[0].messages, carry=carry), DEFAULT_FIELD)


def _default_field(record: JsonValue) -> str:
    return ".".join([*request_path(record), DEFAULT_FIELD])
