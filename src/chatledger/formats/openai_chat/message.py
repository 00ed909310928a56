"""One message, both ways, without loss.

What is written from the typed fields is compared with the source when reading; where they differ the residual says so:

    keys, extra      of the message itself, as `wire.residual` has it: unknown keys, absent keys, their order
    parts, calls     the residuals of content parts and of tool calls, by index
    spelled          under which other key a field stood: `reasoning`, `function_call`, and a content of a message that
                     has none: `refusal`, or `audio` with its transcript
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.calls import read_call, read_function_call, write_call, write_function_call
from chatledger.formats.openai_chat.parts import read_part, write_part
from chatledger.formats.wire.fields import optional_text_at, text_at, wrong
from chatledger.formats.wire.residual import EXTRA, keep, nested, restore
from chatledger.models import LENIENT, ChatMessage, Part, ToolCall
from chatledger.models.json import JsonValue
from chatledger.models.trusted import blank, copy_with, revive

NAME = "openai-chat"
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_REASONING_KEYS = ("reasoning_content", "reasoning")
_FUNCTION_CALL = "function_call"
_REFUSAL = "refusal"
_AUDIO = "audio"


@dataclass(slots=True)
class _Notes:
    """The residual of a message while it is read."""

    residual: dict[str, JsonValue] = field(default_factory=dict)

    def put(self, section: str, key: str | int, value: JsonValue) -> None:
        if value is not None:
            self.residual.setdefault(section, {})[str(key)] = value


def read_message(source: dict[str, JsonValue], path: str, *, lenient: bool) -> ChatMessage:
    """The message that a source object says. Raises DecodeError at the path of what is not of the format."""
    notes = _Notes()
    message = _checked(
        {
            "role": _read_role(source, path, lenient=lenient),
            "content": _read_content(source, path, notes, lenient=lenient),
            "reasoning": _read_reasoning(source, notes),
            "name": optional_text_at(source, "name", path),
            "tool_calls": _read_calls(source, path, notes, lenient=lenient),
            "tool_call_id": optional_text_at(source, "tool_call_id", path),
            "format": NAME,
            "residual": notes.residual or None,
        }
    )
    kept = keep(source, write_message(message, calls=_kept_calls(source, message)))
    return message if kept is None else copy_with(message, {"residual": {**notes.residual, **kept}})


def _kept_calls(source: dict[str, JsonValue], message: ChatMessage) -> list[JsonValue] | None:
    """The calls as they are written, if each became a call of the message: the residual of each has seen to that."""
    values = source.get("tool_calls")
    return values if values is not None and len(values) == len(message.tool_calls or ()) else None


def _checked(fields: dict[str, Any]) -> ChatMessage:
    """A message of fields whose types were looked at when they were read, so that only a subclass of text is left to
    Pydantic, which makes a plain text of it.
    """
    if _PLAIN.issuperset(map(type, fields.values())):
        values = blank(ChatMessage)
        values.update(fields)
        return revive(ChatMessage, values, _GIVEN)
    return ChatMessage.model_validate(fields, context=LENIENT)


_PLAIN = frozenset({str, list, dict, type(None)})
_GIVEN = {"role", "content", "reasoning", "name", "tool_calls", "tool_call_id", "format", "residual"}


def write_message(message: ChatMessage, *, calls: list[JsonValue] | None = None) -> dict[str, JsonValue]:
    """The object that the message was read from; of another origin, what its typed fields can say. `calls` are its
    calls, where these are written already.
    """
    residual = message.residual if message.format == NAME else None
    wire: dict[str, JsonValue] = {"role": message.role}
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        wire["name"] = message.name
    wire |= _content(message, residual)
    if isinstance(message.reasoning, str):
        wire[_reasoning_key(residual)] = message.reasoning
    if message.tool_calls and is_function_call(message):
        wire[_FUNCTION_CALL] = write_function_call(message.tool_calls[0], nested(residual, "calls", "0"))
    elif message.tool_calls is not None:
        wire["tool_calls"] = _write_calls(message.tool_calls, residual) if calls is None else calls
    return _with_said(restore(wire, residual), wire) if residual else wire


def _write_calls(calls: list[ToolCall], residual: JsonValue) -> list[JsonValue]:
    return [write_call(call, nested(residual, "calls", str(idx))) for idx, call in enumerate(calls)]


def _with_said(restored: dict[str, JsonValue], wire: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """What a typed field says stands, although the source had the key absent or null: a program edited the message."""
    said = {key: value for key, value in wire.items() if value is not None and restored.get(key) is None}
    return {**restored, **said}


def is_function_call(message: ChatMessage) -> bool:
    """Whether the message's one call stood in the legacy key `function_call`, where calls have no id."""
    legacy = nested(message.residual, "spelled", "tool_calls") == _FUNCTION_CALL
    return legacy and message.format == NAME and len(message.tool_calls or ()) == 1


def is_function_result(message: ChatMessage) -> bool:
    """Whether the message was a result in the legacy role `function`, which names its call by the name alone."""
    return message.format == NAME and nested(message.residual, "extra", "role") == "function"


def _content(message: ChatMessage, residual: JsonValue) -> dict[str, JsonValue]:
    """The content under its key. A text that the source had elsewhere stands there, as long as it is that text."""
    content = message.content
    if isinstance(content, list):
        parts = (write_part(part, nested(residual, "parts", str(idx))) for idx, part in enumerate(content))
        return {"content": [part for part in parts if part is not None]}
    spelled = None if residual is None else nested(residual, "spelled", "content")
    if spelled == _REFUSAL and content:
        return {"content": None, _REFUSAL: content}
    if spelled == _AUDIO and content and content == nested(residual, EXTRA, _AUDIO, "transcript"):
        return {"content": None}
    return {"content": content}


def _reasoning_key(residual: JsonValue) -> str:
    spelled = nested(residual, "spelled", "reasoning")
    return spelled if spelled in _REASONING_KEYS else _REASONING_KEYS[0]


def _read_role(source: dict[str, JsonValue], path: str, *, lenient: bool) -> str:
    role = text_at(source, "role", path)
    if role == "function":
        return "tool"
    if role in ROLES or lenient:
        return role
    raise DecodeError(f"{path}.role", f"unknown role {role[:80]!r}; known are {', '.join(sorted(ROLES))}")


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
    """What an assistant says otherwise than in the content: a refusal, or the transcript of its voice."""
    for key, text in ((_REFUSAL, source.get(_REFUSAL)), (_AUDIO, nested(source.get(_AUDIO), "transcript"))):
        if text and isinstance(text, str):
            notes.put("spelled", "content", key)
            return text
    return None


def _read_reasoning(source: dict[str, JsonValue], notes: _Notes) -> str | None:
    """Reasoning that is text. In another shape it is the residual's, like every key that is not known here."""
    for key in _REASONING_KEYS:
        if isinstance(source.get(key), str):
            notes.put("spelled", "reasoning", None if key == _REASONING_KEYS[0] else key)
            return str(source[key])
    return None


def _read_calls(source: dict[str, JsonValue], path: str, notes: _Notes, *, lenient: bool) -> list[ToolCall] | None:
    """The calls. One without a name could not be run, and the rules let none in: lenient leaves it to the residual."""
    values = source.get("tool_calls")
    if values is None:
        return _read_legacy_call(source, path, notes, lenient=lenient)
    if not isinstance(values, list):
        raise wrong(f"{path}.tool_calls", "a list or null", values)
    read = [read_call(value, f"{path}.tool_calls[{idx}]") for idx, value in enumerate(values)]
    named = [(call, residual) for call, residual in read if call.name or not lenient]
    for idx, (_, residual) in enumerate(named):
        notes.put("calls", idx, residual)
    return [call for call, _ in named]


def _read_legacy_call(
    source: dict[str, JsonValue], path: str, notes: _Notes, *, lenient: bool
) -> list[ToolCall] | None:
    if source.get(_FUNCTION_CALL) is None:
        return None
    call, residual = read_function_call(source[_FUNCTION_CALL], f"{path}.{_FUNCTION_CALL}")
    if lenient and not call.name:
        return None
    notes.put("spelled", "tool_calls", _FUNCTION_CALL)
    notes.put("calls", 0, residual)
    return [call]
