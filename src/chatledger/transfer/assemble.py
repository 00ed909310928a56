"""Conversations as records: the one place where what was taken apart is put together, for export and conversion alike.

A record in its own format comes out as it came in. In another format the messages stand where they stood if that was a
message list, and otherwise under `messages`, or under the keys that the format's own requests have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chatledger.formats import Encoded, get_codec
from chatledger.models import Loss
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Envelope, pack
from chatledger.transfer.shapes import BranchMessages, get_shape
from chatledger.transfer.shapes.message_list import DEFAULT_FIELD, MessageList


def own_record(
    rest: Mapping[str, JsonValue], envelope: Envelope, branches: Sequence[BranchMessages], *, carry: bool = False
) -> Encoded:
    """The record in the format that it came in."""
    encoded = get_shape(envelope.format).encode(branches, alone=envelope.single, carry=carry)
    return Encoded(pack(encoded.payload, rest, envelope), encoded.losses)


def foreign_record(
    rest: Mapping[str, JsonValue],
    envelope: Envelope,
    branches: Sequence[BranchMessages],
    format: str,  # noqa: A002
    *,
    carry: bool = False,
) -> Encoded:
    """The record with its first branch in another format; a branch beside it is a loss."""
    encoded = get_codec(format).encode(branches[0].messages, carry=carry)
    losses = [*encoded.losses, *(Loss("branch", None, f"branch {number}") for number in range(1, len(branches)))]
    return Encoded(in_place(encoded.payload, rest, envelope), losses)


def in_place(payload: JsonValue, rest: Mapping[str, JsonValue], envelope: Envelope) -> JsonValue:
    """The record with this payload of another format than its own."""
    if isinstance(payload, list) and isinstance(get_shape(envelope.format), MessageList):
        return pack(payload, rest, envelope)
    return {**rest, **conversation_object(payload)}


def conversation_object(payload: JsonValue) -> dict[str, JsonValue]:
    """A payload as the object that trainers and APIs take."""
    return payload if isinstance(payload, dict) else {DEFAULT_FIELD: payload}
