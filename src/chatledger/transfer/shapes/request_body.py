"""Request bodies of an API whose conversation is more than one list: `{"model", "system", "messages", "tools", …}`.

The values of certain keys are the conversation; model, tools and settings are the rest of the record. A body may be a
record by itself, or part of a recorded request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.errors import DecodeError
from chatledger.formats import Codec
from chatledger.models import RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Location, locate_in, take_out
from chatledger.transfer.fields import require_path
from chatledger.transfer.shapes.requests import request_body, request_path
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Measured, list_alone, measured


@dataclass(frozen=True, slots=True)
class RequestBody:
    """`keys` hold the conversation, in the order of the API's documentation. Only the last one is required."""

    codec: Codec
    keys: Sequence[str]
    branching: bool = False

    @property
    def name(self) -> str:
        return self.codec.name

    def recognises(self, record: JsonValue) -> bool:
        try:
            return self.codec.recognises(take_out(record, self.locate(record, None)).payload)
        except DecodeError:
            return False

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        """With `fieldname`, the conversation is the value of that field, in the form that the codec reads."""
        if fieldname is not None:
            return locate_in(record, require_path(record, fieldname), self.keys)
        if isinstance(record, list):
            return Location()
        body = request_body(record)
        require_path(body, self.keys[-1])
        return Location(request_path(record), [key for key in self.keys if key in body], single=False)

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        """The whole record: requests to different models may hold the same messages."""
        return record

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        decoded = self.codec.decode(payload, rules=rules)
        return Conversation([BranchMessages(decoded.messages)], decoded.losses)

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        written = measured(self.codec, branches[0].messages, carry=carry)
        return list_alone(written, self.keys[-1]) if alone else written
