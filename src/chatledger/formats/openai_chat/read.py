"""A payload as messages: each object of the list becomes one message.

The reader writes each message again at once, and the residual keeps the difference from the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.parts import REFUSAL, read_call, read_function_call, read_part
from chatledger.formats.openai_chat.write import (
    AUDIO,
    FUNCTION_CALL,
    NAME,
    REASONING_KEYS,
    ROLES,
    write_message,
)
from chatledger.formats.wire.fields import as_object, built, nameless, optional_text_at, role_at, wrong
from chatledger.formats.wire.plain import dump_all, dump_given, dumped, plain_value, require_json
from chatledger.formats.wire.residual import keep, nested
from chatledger.models import ChatMessage, Part, ToolCall
from chatledger.models.base import copy_with
from chatledger.models.json import JsonValue

ROOT = "messages"
_FIELDS = {"role", "content", "reasoning", "name", "tool_calls", "tool_call_id", "format", "residual"}
_DEPTH = 4
"""The maximum depth of objects in a message: its calls and parts, their values, and one more level."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The messages of a list. Raises DecodeError for anything else."""
    if isinstance(payload, dict) and ROOT in payload:
        raise DecodeError(ROOT, "expected a list of messages, not a request body; give its key 'messages'")
    if not isinstance(payload, list):
        raise wrong(ROOT, "a list of messages", payload)
    sources = [plain_message(value, f"{ROOT}[{index}]") for index, value in enumerate(payload)]
    require_json(sources, ROOT)
    return [_read_message(source, f"{ROOT}[{index}]", lenient=lenient) for index, source in enumerate(sources)]


def plain_message(value: object, path: str) -> Any:
    """A message as a dict, if it is a dict or an object that dumps a dict; any other value unchanged.

    Keys that were not set stay absent, except for the role: the SDK has a class for each role, with the role as a
    default.
    """
    if type(value) is dict and _SCALARS.issuperset(map(type, value.values())):
        return value.copy()
    message = plain_value(value, path, _DEPTH, dump_given)
    if isinstance(message, dict) and "role" not in message and not isinstance(value, dict):
        return plain_value(dumped(value, path, dump_all), path, _DEPTH, dump_given)
    return message


@dataclass(slots=True)
class _Notes:
    """The residual of a message while it is read."""

    residual: dict[str, JsonValue] = field(default_factory=dict)

    def put(self, section: str, key: str | int, value: JsonValue) -> None:
        if value is not None:
            self.residual.setdefault(section, {})[str(key)] = value


def _read_message(value: JsonValue, path: str, *, lenient: bool) -> ChatMessage:
    """The message of a source object. Raises DecodeError with the path of an invalid value."""
    source = as_object(value, path)
    notes = _Notes()
    message = built(
        {
            "role": _read_role(source, path, lenient=lenient),
            "content": _read_content(source, path, notes, lenient=lenient),
            "reasoning": _read_reasoning(source, notes),
            "name": optional_text_at(source, "name", path),
            "tool_calls": _read_calls(source, path, notes, lenient=lenient),
            "tool_call_id": optional_text_at(source, "tool_call_id", path),
            "format": NAME,
            "residual": notes.residual or None,
        },
        _FIELDS,
    )
    difference = keep(source, write_message(message, calls=_written_calls(source, message)))
    return message if difference is None else copy_with(message, {"residual": {**notes.residual, **difference}})


def _written_calls(source: dict[str, JsonValue], message: ChatMessage) -> list[JsonValue] | None:
    """The calls of the source, if each became a call of the message, so that its residual restores it."""
    values = source.get("tool_calls")
    return values if values is not None and len(values) == len(message.tool_calls or ()) else None


def _read_role(source: dict[str, JsonValue], path: str, *, lenient: bool) -> str:
    role = role_at(source, path, ROLES, lenient=lenient)
    return "tool" if role == "function" else role


def _read_content(source: dict[str, JsonValue], path: str, notes: _Notes, *, lenient: bool) -> str | list[Part] | None:
    content = source.get("content")
    if content is None:
        return _read_spoken(source, notes)
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(f"{path}.content", "text, a list of parts or null", content)
    parts: list[Part] = []
    for idx, value in enumerate(content):
        part, residual = read_part(value, f"{path}.content[{idx}]", lenient=lenient)
        parts.append(part)
        notes.put("parts", idx, residual)
    return parts


def _read_spoken(source: dict[str, JsonValue], notes: _Notes) -> str | None:
    """The text of an assistant message without content: its refusal, or the transcript of its audio."""
    for key, text in (
        (REFUSAL, source.get(REFUSAL)),
        (AUDIO, nested(source.get(AUDIO), "transcript")),
    ):
        if text and isinstance(text, str):
            notes.put("spelled", "content", key)
            return text
    return None


def _read_reasoning(source: dict[str, JsonValue], notes: _Notes) -> str | None:
    """Reasoning as text. The residual keeps any other reasoning, like every unknown key."""
    for key in REASONING_KEYS:
        if isinstance(source.get(key), str):
            notes.put("spelled", "reasoning", None if key == REASONING_KEYS[0] else key)
            return str(source[key])
    return None


def _read_calls(source: dict[str, JsonValue], path: str, notes: _Notes, *, lenient: bool) -> list[ToolCall] | None:
    """The calls. Strict refuses a call without a name, as the rules do; lenient keeps it in the residual."""
    values = source.get("tool_calls")
    if values is None:
        return _read_legacy_call(source, path, notes, lenient=lenient)
    if not isinstance(values, list):
        raise wrong(f"{path}.tool_calls", "a list or null", values)
    read = [read_call(value, f"{path}.tool_calls[{idx}]") for idx, value in enumerate(values)]
    named = [(call, residual) for call, residual in read if call.name]
    if len(named) < len(read) and not lenient:
        idx = next(idx for idx, (call, _) in enumerate(read) if not call.name)
        raise nameless(f"{path}.tool_calls[{idx}]")
    for idx, (_, residual) in enumerate(named):
        notes.put("calls", idx, residual)
    return [call for call, _ in named]


def _read_legacy_call(
    source: dict[str, JsonValue], path: str, notes: _Notes, *, lenient: bool
) -> list[ToolCall] | None:
    if source.get(FUNCTION_CALL) is None:
        return None
    call, residual = read_function_call(source[FUNCTION_CALL], f"{path}.{FUNCTION_CALL}")
    if not call.name and not lenient:
        raise nameless(f"{path}.{FUNCTION_CALL}.name")
    if not call.name:
        return None
    notes.put("spelled", "tool_calls", FUNCTION_CALL)
    notes.put("calls", 0, residual)
    return [call]
