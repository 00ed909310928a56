"""Stored messages as messages of the API, one for each group.

The residual has these sections, besides those of parts and calls:

    rest_at      the positions of the other blocks beside tool results, if they were not after all results
    calls_at     the positions of an assistant's calls, if they were not after all other blocks
    keys, extra  of the message of the API, as in `wire.residual`: on the first message of the group
    null         how the source spelled a missing content: `absent` or `null`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.anthropic.parts import (
    NAME,
    PARTS,
    is_result,
    reads_as_result,
    write_call,
    write_parts,
    write_result,
)
from chatledger.formats.wire.call_pairs import Pairing, made_id
from chatledger.formats.wire.residual import KEYS, interleave, nested, own_residual, put_back
from chatledger.models import (
    ChatMessage,
    TextPart,
    continues,
)
from chatledger.models.json import JsonValue

REST_AT = "rest_at"
CALLS = "calls"
CALLS_AT = "calls_at"
NULL = "null"

Wire = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class PairedMessage:
    """A message, its position in the payload, and the ids of its calls, or of the call that it answers."""

    position: int
    message: ChatMessage
    call_ids: Sequence[str] = ()
    call_id: str = ""


def pair_messages(messages: Sequence[tuple[int, ChatMessage]]) -> list[PairedMessage]:
    """The messages in order, each with its position. An id that is not None is not changed."""
    pairing = Pairing()
    paired: list[PairedMessage] = []
    for position, message in messages:
        call_ids, call_id = pairing.ask(message, position + 1), ""
        if is_result(message):
            answered = pairing.answer(message)
            call_id = made_id(message, position + 1) if answered is None else answered.id
        paired.append(PairedMessage(position, message, call_ids, call_id))
    return paired


def joins(before: ChatMessage, message: ChatMessage) -> bool:
    """Whether a message is written into the same message of the API as the one before it.

    A message of this format is marked for that. Results of other formats become one message, as the API requires, and a
    user message directly after them joins it, so that user and assistant alternate.
    """
    if not is_result(before):
        return False
    if message.format == NAME:
        return continues(message) and (is_result(message) or message.role == "user")
    return is_result(message) or (message.role == "user" and bool(message.content))


def write_group(group: Sequence[PairedMessage]) -> Wire:
    """One message of the API."""
    first = group[0].message
    if is_result(first):
        results = [write_result(paired.message, paired.call_id) for paired in group if is_result(paired.message)]
        rest = [paired.message for paired in group if not is_result(paired.message)]
        return _enveloped(first, "user", _with_rest(results, rest))
    return _enveloped(first, first.role, _content(group[0]))


def write_system(message: ChatMessage) -> JsonValue:
    """The value of `system` for a single prompt."""
    if nested(own_residual(message, NAME), NULL) == "null" and message.content is None:
        return None
    return "" if message.content is None else _plain_content(message)


def content_blocks(message: ChatMessage) -> list[Wire]:
    """The content as a list of blocks; a text is one block."""
    residual = own_residual(message, NAME)
    parts = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content or []
    blocks = write_parts(parts, residual)
    return [block for block in blocks if message.role != "user" or not reads_as_result(block)]


def _with_rest(results: list[Wire], rest: list[ChatMessage]) -> list[Wire]:
    for message in rest:
        return interleave(results, content_blocks(message), nested(own_residual(message, NAME), REST_AT))
    return results


def _content(paired: PairedMessage) -> JsonValue:
    message = paired.message
    if message.role != "assistant" or not message.tool_calls:
        return _plain_content(message)
    residual = own_residual(message, NAME)
    calls = [
        write_call(call, call_id, nested(residual, CALLS, str(idx)))
        for idx, (call, call_id) in enumerate(zip(message.tool_calls, paired.call_ids, strict=True))
    ]
    return interleave(content_blocks(message), calls, nested(residual, CALLS_AT))


def _plain_content(message: ChatMessage) -> JsonValue:
    """The content of a message without calls. A text with a residual of its part is a list, as it was in the source."""
    if isinstance(message.content, str) and nested(own_residual(message, NAME), PARTS) is None:
        return message.content
    return None if message.content is None else content_blocks(message)


def _enveloped(first: ChatMessage, role: str, content: JsonValue) -> Wire:
    """The message of the API around its content. The residual never sets a role or a content: a program may have
    changed the residual, and the API would reject the message.
    """
    residual = own_residual(first, NAME)
    message = {"role": role, **_content_field(content, residual), **_reply_metadata(first, residual)}
    whole = put_back(message, residual)
    typed = ("role", "content")
    return {
        key: message[key] if key in typed else value
        for key, value in whole.items()
        if key in message or key not in typed
    }


def _content_field(content: JsonValue, residual: JsonValue) -> Wire:
    """The content under its key. A missing content is written as in the source; otherwise as empty text, since the API
    requires a content.
    """
    if content is not None:
        return {"content": content}
    spelled = nested(residual, NULL)
    if spelled == "absent":
        return {}
    return {"content": None if spelled == "null" else ""}


def _reply_metadata(message: ChatMessage, residual: JsonValue) -> Wire:
    """The keys of a reply beside role and content."""
    keys = nested(residual, KEYS)
    if message.role != "assistant" or not isinstance(keys, list):
        return {}
    metadata = message.response_metadata or {}
    return {key: value for key, value in metadata.items() if key in keys and key not in ("role", "content")}
