"""Put conversations back into their records, for export and conversion.

A record in its own format equals the imported record. In another format, a message list replaces the record's own
message list. Any other conversation is written under the keys that the readers of its format expect, so that an import
can read the result, with the format named or detected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chatledger.errors import NothingToSend
from chatledger.formats import get_codec
from chatledger.formats.losses.codes import LEFT_OUT
from chatledger.formats.model_view import INSTRUCTIONS
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Envelope, pack
from chatledger.transfer.shapes import BranchMessages, conversation_keys, get_shape
from chatledger.transfer.shapes.message_list import MessageList
from chatledger.transfer.shapes.requests import request_path
from chatledger.transfer.shapes.shape import Measured, measured

INTERACTION = "interaction"
"""The key that holds a recorded request once its conversation is no longer in the format of its endpoint."""


def own_record(
    rest: Mapping[str, JsonValue], envelope: Envelope, branches: Sequence[BranchMessages], *, carry: bool = False
) -> Measured:
    """The record in its own format."""
    written = get_shape(envelope.format).encode(branches, alone=envelope.single, carry=carry)
    return Measured(pack(written.payload, rest, envelope), written.losses)


def foreign_record(
    rest: Mapping[str, JsonValue],
    envelope: Envelope,
    branches: Sequence[BranchMessages],
    format: str,  # noqa: A002
    *,
    carry: bool = False,
) -> Measured:
    """The record with its first branch in another format. Every other branch is a loss.

    Raises NothingToSend if no message of the branch can be written: no API takes an empty list.
    """
    messages = branches[0].messages
    written = measured(get_codec(format), messages, carry=carry)
    if messages and is_empty(written.payload, format):
        raise NothingToSend(format, _reasons(messages, written.losses))
    placed = in_place(written.payload, rest, envelope, format)
    branch_losses = [Loss("branch", None, f"branch {number}") for number in range(1, len(branches))]
    return Measured(placed.payload, [*written.losses, *placed.losses, *branch_losses])


def is_empty(payload: JsonValue, format: str) -> bool:  # noqa: A002
    """Whether there are no messages in a payload of the format."""
    return conversation_object(payload, format).get(conversation_keys(format)[-1]) in (None, [])


def _reasons(messages: Sequence[ChatMessage], losses: Sequence[Loss]) -> list[tuple[int | None, str]]:
    left_out = {loss.seq for loss in losses if loss.code == LEFT_OUT}
    return [(message.seq, "left out" if message.seq in left_out else INSTRUCTIONS) for message in messages]


def in_place(
    payload: JsonValue,
    rest: Mapping[str, JsonValue],
    envelope: Envelope,
    format: str,  # noqa: A002
) -> Measured:
    """The record with a payload in another format. A key of the rest that a reader would take for a part of the
    conversation is left out, as a loss.
    """
    conversation = conversation_object(payload, format)
    if request_path(rest):
        return Measured({INTERACTION: dict(rest), **conversation})
    keys = conversation_keys(format)
    are_lists = isinstance(get_shape(format), MessageList) and isinstance(get_shape(envelope.format), MessageList)
    if are_lists and list(conversation) == list(keys):
        return Measured(pack(conversation[keys[0]], rest, envelope))
    rest_kept = {key: value for key, value in rest.items() if key not in keys}
    return Measured(rest_kept | conversation, [Loss("replaced-key", None, key) for key in rest if key in keys])


def conversation_object(payload: JsonValue, format: str) -> dict[str, JsonValue]:  # noqa: A002
    """The payload as an object, as trainers and APIs expect it."""
    return payload if isinstance(payload, dict) else {conversation_keys(format)[-1]: payload}
