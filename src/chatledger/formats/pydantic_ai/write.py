"""Stored messages as messages of the framework: an assistant's is a response, and the others are parts of requests.

Each part of a request is one row. The first row holds the head of the request, and the others continue it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatledger.formats.pydantic_ai.names import (
    AS_JSON,
    CALL,
    CALLS,
    CALLS_AT,
    DIGESTS,
    EMPTY,
    FEEDBACK,
    HEAD,
    KIND,
    NAME,
    PART,
    PART_KIND,
    PARTS,
    RETRY,
    RETURN,
    SINGLE,
    SYSTEM,
    USER,
    WHOLE,
    Source,
    original,
    request_head,
    response_head,
)
from chatledger.formats.pydantic_ai.parts import digests_of, write_items, write_part
from chatledger.formats.wire.arguments import value_of
from chatledger.formats.wire.call_pairs import Answered, Pairing, made_id
from chatledger.formats.wire.residual import interleave, nested, own_residual, restore
from chatledger.models import ChatMessage, OpaquePart, TextPart, ToolCall, continues
from chatledger.models.json import JsonValue

FAILED = "failed"
SUCCESS = "success"


@dataclass(slots=True)
class ModelMessageWriter:
    """Writes messages one after the other into `messages`. Calls without an id, and their results, get a
    generated id.
    """

    messages: list[JsonValue] = field(default_factory=list)
    _pairing: Pairing = field(default_factory=Pairing)
    _request: list[JsonValue] | None = None
    """The parts of the request that the next row may continue."""
    _is_own: bool = False
    """Whether that request is of this format."""

    def write(self, message: ChatMessage, position: int, *, is_own: bool) -> JsonValue:
        """Write a message that fits the format. Returns its part, or its message for a response; None if left out."""
        answered = self._pairing.follow(message, position)
        residual = own_residual(message, NAME)
        if message.role == "assistant":
            return self._alone(write_response(message, position))
        if nested(residual, WHOLE) is True:
            return self._alone(_kept_whole(message))
        if nested(residual, EMPTY) is True and message.content is None:
            return self._alone(restore(request_head([]), nested(residual, HEAD)))
        part = write_row(message, position, answered)
        if part is not None:
            self._add(part, message, is_own=is_own)
        return part

    def _alone(self, written: JsonValue) -> JsonValue:
        self._request = None
        if written is not None:
            self.messages.append(written)
        return written

    def _add(self, part: JsonValue, message: ChatMessage, *, is_own: bool) -> None:
        """Add a part of a request. Rows of this format mark the end of a request; rows of other formats share one."""
        joins = self._is_own == is_own and (continues(message) if is_own else True)
        if self._request is None or not joins:
            self._request, self._is_own = [], is_own
            self.messages.append(restore(request_head(self._request), nested(own_residual(message, NAME), HEAD)))
        self._request.append(part)


def write_response(message: ChatMessage, position: int) -> Source:
    residual = own_residual(message, NAME)
    content = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content or []
    written = (write_part(part, nested(residual, PARTS, str(index))) for index, part in enumerate(content))
    parts = [part for part in written if part is not None]
    calls: list[JsonValue] = [
        restore(encoded_call(call, made_id(message, position, index)), nested(residual, CALLS, str(index)))
        for index, call in enumerate(message.tool_calls or ())
    ]
    head = nested(residual, HEAD)
    stamp = created(message) if head is None else {}
    encoded = response_head(
        head or stamp, interleave(parts, calls, nested(residual, CALLS_AT)), message.response_metadata or {}
    )
    return restore(encoded, head)


def encoded_call(call: ToolCall, made_id: str) -> Source:
    """The part of a call; `made_id` is its id if the call has none."""
    return {
        "tool_name": call.name,
        "args": call.arguments,
        "tool_call_id": made_id if call.id is None else call.id,
        "tool_kind": None,
        "id": None,
        "provider_name": None,
        "provider_details": None,
        PART_KIND: CALL,
    }


def created(message: ChatMessage) -> Source:
    """A section with the time of a message of another format. Messages of this format have their own time."""
    if message.created_at is None or message.format == NAME:
        return {}
    return {"given": {"timestamp": message.created_at.isoformat().replace("+00:00", "Z")}}


def write_row(message: ChatMessage, position: int, answered: Answered | None) -> JsonValue:
    """The part of a request; None for a message that no request can hold."""
    if message.role not in ("system", "user", "tool"):
        content = message.content
        is_kept = own_residual(message, NAME) is not None or message.format is not None
        parts = content if isinstance(content, list) and is_kept else []
        return parts[0].value if len(parts) == 1 and isinstance(parts[0], OpaquePart) else None
    section = nested(own_residual(message, NAME), PART)
    made_section = created(message) if section is None else section
    return restore(encoded_row(message, made_section, position, answered), section)


def encoded_row(message: ChatMessage, section: JsonValue, position: int, answered: Answered | None) -> Source:
    """The part of a request before its residual is put back; `section` is that residual."""
    kind, stamp = nested(section, KIND), original(section, "timestamp")
    if message.role == "system":
        return {
            "content": message.text,
            **stamp,
            "dynamic_ref": None,
            "context_id": None,
            "scope": "conversation",
            "metadata": None,
            PART_KIND: SYSTEM,
        }
    if message.role == "tool":
        return _encoded_result(message, section, position, answered)
    if kind == RETRY:
        return _encoded_retry(message, section, None, "")
    if kind == FEEDBACK:
        return {"content": _text_or_json(message, section), "retry": None, **stamp, PART_KIND: FEEDBACK}
    content: JsonValue = message.content or ""
    if isinstance(message.content, list):
        content = write_items(message.content, own_residual(message, NAME))
    return {"content": content, **stamp, PART_KIND: USER}


def _encoded_result(message: ChatMessage, section: JsonValue, position: int, answered: Answered | None) -> Source:
    call_id, name = message.tool_call_id, message.name
    if call_id is None:
        call_id = made_id(message, position) if answered is None else answered.id
    if name is None:
        name = "" if answered is None else answered.call.name
    if nested(section, KIND) == RETRY:
        return _encoded_retry(message, section, name, call_id)
    content = _text_or_json(message, section)
    return {
        "tool_name": name,
        "content": content,
        "tool_call_id": call_id,
        "tool_kind": None,
        "metadata": None,
        **original(section, "timestamp"),
        "outcome": FAILED if message.is_error else SUCCESS,
        "retry": None,
        PART_KIND: RETURN,
        **({DIGESTS: digests_of(content)} if isinstance(content, (dict, list)) else {}),
    }


def _encoded_retry(message: ChatMessage, section: JsonValue, name: str | None, call_id: str) -> Source:
    return {
        "content": _text_or_json(message, section),
        "tool_name": name,
        "tool_call_id": call_id,
        **original(section, "timestamp"),
        PART_KIND: RETRY,
    }


def _text_or_json(message: ChatMessage, section: JsonValue) -> JsonValue:
    """The content of a result or of a retry: any JSON, which the row has as text."""
    if isinstance(message.content, list):
        items = write_items(message.content, own_residual(message, NAME))
        return items[0] if nested(section, SINGLE) is True and len(items) == 1 else items
    if nested(section, AS_JSON) is True and message.content is not None:
        return value_of(message.content)
    return message.content


def _kept_whole(message: ChatMessage) -> JsonValue:
    parts: Sequence[object] = message.content if isinstance(message.content, list) else ()
    value = parts[0].value if len(parts) == 1 and isinstance(parts[0], OpaquePart) else None
    return value if isinstance(value, dict) else None
