"""Stored messages as events of ADK.

A message is one event, but the results of one event are a row each: the first row holds the head of the event, and the
others continue it. The results of another origin that follow each other are one event too, as ADK writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatledger.formats.google_adk.parts import (
    AS_JSON,
    CALLS,
    CALLS_AT,
    CAMEL,
    HEAD,
    METADATA,
    MODEL,
    NAME,
    OUTPUT,
    PARTS,
    RESPONSE,
    REST_AT,
    RESULT,
    USER,
    Source,
    is_metadata,
    restored,
    spelled,
    write_part,
)
from chatledger.formats.wire.arguments import value_of
from chatledger.formats.wire.residual import FORM, interleave, nested, own_residual, restore_deep
from chatledger.models import ChatMessage, MediaPart, OpaquePart, TextPart, ToolCall, continues
from chatledger.models.json import JsonValue


@dataclass(slots=True)
class Event:
    """One event and the rows that it was written from."""

    head: ChatMessage
    parts: list[JsonValue]
    is_own: bool
    author: str
    """The agent whose calls the results of another origin answer."""
    rows: list[int] = field(default_factory=list)

    @property
    def camel(self) -> bool:
        return is_camel(self.head)

    def joins(self, message: ChatMessage, *, is_own: bool) -> bool:
        """Whether the message is another row of this event."""
        if self.is_own != is_own or self.head.role != "tool":
            return False
        return continues(message) if is_own else message.role == "tool"

    def add(self, message: ChatMessage, row: int) -> None:
        self.rows.append(row)
        if message.role == "tool":
            self.parts.append(write_result(message, camel=self.camel))
        else:
            rest = write_parts(message, camel=self.camel)
            self.parts = interleave(self.parts, rest, nested(own_residual(message, NAME), REST_AT))

    def write(self) -> Source:
        return write_event(self.head, self.parts, self.author)


@dataclass(slots=True)
class EventWriter:
    """Writes messages that fit the format, one after the other."""

    events: list[Event] = field(default_factory=list)

    def write(self, message: ChatMessage, row: int, *, is_own: bool, author: str | None = None) -> None:
        """`author` is the agent that a result of another origin belongs to."""
        event = self.events[-1] if self.events else None
        if event is None or not event.joins(message, is_own=is_own):
            event = Event(message, [], is_own, author or MODEL)
            self.events.append(event)
        event.add(message, row)


def is_camel(head: ChatMessage) -> bool:
    return bool(nested(own_residual(head, NAME), FORM) == CAMEL)


def write_event(head: ChatMessage, parts: Sequence[JsonValue], author: str = MODEL) -> Source:
    """The event of its first row and its parts."""
    residual = nested(own_residual(head, NAME), HEAD)
    source = restore_deep(encoded_head(head, camel=is_camel(head), has_parts=bool(parts), author=author), residual)
    content = source.get("content")
    if parts:
        held = content if isinstance(content, dict) and "parts" in content else {"parts": None, "role": _role(head)}
        source["content"] = {**held, "parts": list(parts)}
    return source


def encoded_head(head: ChatMessage, *, camel: bool, has_parts: bool, author: str = MODEL) -> Source:
    """The event without its parts, and without its residual, in the order of ADK's fields."""
    metadata = head.response_metadata or {}
    fields = {key: metadata[key] for key in METADATA if key in metadata and is_metadata(key, metadata[key])}
    model = {key: fields.pop(key) for key in METADATA[:1] if key in fields}
    content: Source = {"content": {"parts": None, "role": _role(head)}} if has_parts else {}
    actions: Source = {
        "state_delta": {},
        "artifact_delta": {},
        "requested_auth_configs": {},
        "requested_tool_confirmations": {},
    }
    event: Source = {
        **model,
        **content,
        **fields,
        "invocation_id": head.run_id or "",
        "author": author if head.role == "tool" else _author(head),
        "actions": spelled(actions, camel),
        "node_info": {"path": ""},
        "id": head.message_id or "",
        "timestamp": 0.0 if head.created_at is None else head.created_at.timestamp(),
    }
    return spelled(event, camel)


def _role(head: ChatMessage) -> str:
    return MODEL if head.role == "assistant" else USER


def _author(head: ChatMessage) -> str:
    return head.name or (MODEL if head.role == "assistant" else USER)


def write_parts(message: ChatMessage, *, camel: bool) -> list[JsonValue]:
    """The parts of a message that is no result: its content, with its calls between."""
    residual = own_residual(message, NAME)
    content = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content or []
    parts = [
        written
        for idx, part in enumerate(content)
        for written in write_part(part, nested(residual, PARTS, str(idx)), camel=camel)
    ]
    calls: list[JsonValue] = [
        restored(encoded_call(call, camel=camel), nested(residual, CALLS, str(idx)))
        for idx, call in enumerate(message.tool_calls or ())
    ]
    return interleave(parts, calls, nested(residual, CALLS_AT))


def encoded_call(call: ToolCall, *, camel: bool) -> Source:
    """The part of a call without its residual. Arguments that are no object are those that nobody could parse."""
    function_call: Source = {} if call.id is None else {"id": call.id}
    if isinstance(call.arguments, dict):
        function_call["args"] = call.arguments
    elif call.arguments is not None:
        function_call["args"] = {"_raw": call.arguments}
    return spelled({"function_call": {**function_call, "name": call.name}}, camel)


def write_result(message: ChatMessage, *, camel: bool) -> Source:
    residual = own_residual(message, NAME)
    return restored(encoded_result(message, residual, camel=camel), nested(residual, RESULT))


def encoded_result(message: ChatMessage, residual: JsonValue, *, camel: bool) -> Source:
    """The part of a result without its own residual: text as its response, and media beside it."""
    text, media = _text_and_media(message, residual, camel)
    function_response: Source = {} if not media else {"parts": media}
    if message.tool_call_id is not None:
        function_response["id"] = message.tool_call_id
    if message.name is not None:
        function_response["name"] = message.name
    if text is not None:
        function_response["response"] = _response(text, message.is_error is True, nested(residual, RESPONSE))
    return spelled({"function_response": function_response}, camel)


def _text_and_media(message: ChatMessage, residual: JsonValue, camel: bool) -> tuple[str | None, list[JsonValue]]:
    if not isinstance(message.content, list):
        return message.content, []
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    media = [
        written
        for idx, part in enumerate(message.content)
        if isinstance(part, (MediaPart, OpaquePart))
        for written in write_part(part, nested(residual, PARTS, str(idx)), camel=camel)
    ]
    return "\n".join(texts) if texts else None, media


def _response(text: str, is_error: bool, form: JsonValue) -> JsonValue:
    if form == AS_JSON:
        value = value_of(text)
        if isinstance(value, dict):
            return value
    return {"error" if is_error else OUTPUT if form == OUTPUT else "result": text}
