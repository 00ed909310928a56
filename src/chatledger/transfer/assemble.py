"""Put conversations back into their records, for export and conversion.

A record in its own format comes out as it came in. In another format, a message list takes the place of the record's
own message list. Any other payload goes under `messages`, or under the keys of the format's requests.
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
    """The record in its own format."""
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
    """The record with its first branch in another format. Every other branch is a loss."""
    encoded = get_codec(format).encode(branches[0].messages, carry=carry)
    losses = [*encoded.losses, *(Loss("branch", None, f"branch {number}") for number in range(1, len(branches)))]
    return Encoded(in_place(encoded.payload, rest, envelope), losses)


def in_place(payload: JsonValue, rest: Mapping[str, JsonValue], envelope: Envelope) -> JsonValue:
    """The record with a payload in another format."""
    if isinstance(payload, list) and isinstance(get_shape(envelope.format), MessageList):
        return pack(payload, rest, envelope)
    return {**rest, **conversation_object(payload)}


def conversation_object(payload: JsonValue) -> dict[str, JsonValue]:
    """The payload as an object, as trainers and APIs expect it."""
    return payload if isinstance(payload, dict) else {DEFAULT_FIELD: payload}
