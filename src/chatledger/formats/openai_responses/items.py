"""One item of a payload, both ways: a message, a piece of reasoning, a call or a result.

An item of another type is kept whole, as an opaque part of the assistant's message at that position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_responses.parts import read_part, read_thought, write_part, write_thought
from chatledger.formats.wire.fields import as_object, nameless, optional_text_at, role_at, text_at, wrong
from chatledger.formats.wire.parts import by_index, opaque
from chatledger.formats.wire.residual import keep, nested, restore
from chatledger.models import OpaquePart, Part, ThinkPart, ToolCall
from chatledger.models.json import JsonValue

Source = dict[str, JsonValue]

MESSAGE, REASONING, CALL, OUTPUT, OPAQUE = "message", "reasoning", "call", "output", "opaque"
INSTRUCTIONS = "instructions"
ROLES = frozenset({"system", "developer", "user", "assistant"})

FUNCTION_CALL, CUSTOM_CALL = "function_call", "custom_tool_call"
ARGUMENTS = {FUNCTION_CALL: "arguments", CUSTOM_CALL: "input"}
"""The types of calls, each with the key of its arguments."""
OUTPUT_OF = {kind: f"{kind}_output" for kind in ARGUMENTS}
_CALL_OF = {output: kind for kind, output in OUTPUT_OF.items()}


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item that was read. `entry` is its entry in the residual: its kind, and the other values to write it."""

    source: Source
    role: str
    entry: dict[str, JsonValue]
    content: str | list[Part] | None = None
    call: ToolCall | None = None
    call_id: str | None = None

    @property
    def kind(self) -> str:
        return str(self.entry["kind"])


@dataclass(slots=True)
class Held:
    """The content of one item, taken from its message."""

    role: str
    content: str | list[Part] | None = None
    call: ToolCall = field(default_factory=lambda: ToolCall(name=""))
    call_id: str | None = None


def read_item(value: JsonValue, path: str, *, lenient: bool) -> ReadItem:
    """Raises DecodeError with the path of an invalid value. Lenient rules keep the item whole."""
    source = as_object(value, path)
    try:
        return _reader_of(source, path)(source, path, lenient)
    except DecodeError:
        if not lenient:
            raise
        return _read_opaque(source, path, lenient)


def write_item(held: Held, entry: JsonValue) -> Source:
    """The source of the item that `entry` describes."""
    return restore(_WRITERS[entry["kind"]](held, entry), entry.get("kept"))


def _reader_of(source: Source, path: str) -> Callable[[Source, str, bool], ReadItem]:
    kind = source.get("type")
    if kind in (None, MESSAGE) and "role" in source:
        return _read_message
    if kind is None and not isinstance(source.get("id"), str):  # a reference to an item needs no type
        raise DecodeError(f"{path}.type", "missing: an item needs a type or a role")
    if kind is not None and not isinstance(kind, str):
        raise wrong(f"{path}.type", "text", kind)
    return _READERS.get(kind or "", _read_opaque)


def _kept(source: Source, role: str, entry: dict[str, JsonValue], **held: Any) -> ReadItem:
    """The item, with the residual that writing it needs."""
    rest = keep(source, _WRITERS[entry["kind"]](Held(role, **held), entry))
    return ReadItem(source, role, entry if rest is None else {**entry, "kept": rest}, **held)


def _read_message(source: Source, path: str, lenient: bool) -> ReadItem:
    role = role_at(source, path, ROLES, lenient=lenient)
    if source.get("tool_calls") and not lenient:  # these belong to openai-chat: the residual would hide the calls
        raise DecodeError(f"{path}.tool_calls", "a message has no tool calls here; use items of type function_call")
    content, entry = _read_content(source.get("content"), f"{path}.content", role, lenient=lenient)
    return _kept(source, role, {"kind": MESSAGE, **entry}, content=content)


def _write_message(held: Held, entry: JsonValue) -> Source:
    return {"role": held.role} | _content_field("content", held, entry)


def _read_reasoning(source: Source, path: str, lenient: bool) -> ReadItem:
    thought, lengths = read_thought(source)
    return _kept(source, "assistant", {"kind": REASONING, **lengths}, content=[thought])


def _write_reasoning(held: Held, entry: JsonValue) -> Source:
    [thought] = held.content if isinstance(held.content, list) else [ThinkPart(text="")]
    return write_thought(thought, entry) if isinstance(thought, ThinkPart) else {}


def _read_call(source: Source, path: str, lenient: bool) -> ReadItem:
    kind = source["type"]
    name, arguments = text_at(source, "name", path), source.get(ARGUMENTS[kind])
    if arguments is not None and not isinstance(arguments, (str, dict)):
        raise wrong(f"{path}.{ARGUMENTS[kind]}", "text, an object or null", arguments)
    if not name:
        raise nameless(f"{path}.name")
    call = ToolCall(id=optional_text_at(source, "call_id", path), name=name, arguments=arguments)
    return _kept(source, "assistant", {"kind": CALL, **_form(kind, FUNCTION_CALL)}, call=call)


def _write_call(held: Held, entry: JsonValue) -> Source:
    kind, call = entry.get("form", FUNCTION_CALL), held.call
    wire: Source = {"type": kind} if call.id is None else {"type": kind, "call_id": call.id}
    return {**wire, "name": call.name, ARGUMENTS.get(kind, "arguments"): call.arguments}


def _read_output(source: Source, path: str, lenient: bool) -> ReadItem:
    call_id = optional_text_at(source, "call_id", path)
    content, entry = _read_content(source.get("output"), f"{path}.output", "tool", lenient=lenient)
    entry |= _form(_CALL_OF[source["type"]], FUNCTION_CALL)
    return _kept(source, "tool", {"kind": OUTPUT, **entry}, content=content, call_id=call_id)


def _write_output(held: Held, entry: JsonValue) -> Source:
    wire: Source = {"type": OUTPUT_OF.get(entry.get("form", FUNCTION_CALL), OUTPUT_OF[FUNCTION_CALL])}
    if held.call_id is not None:
        wire["call_id"] = held.call_id
    return wire | _content_field("output", held, entry)


def _read_opaque(source: Source, path: str, lenient: bool) -> ReadItem:
    return ReadItem(source, "assistant", {"kind": OPAQUE}, content=[opaque(source)])


def _write_opaque(held: Held, entry: JsonValue) -> Source:
    [part] = held.content if isinstance(held.content, list) else [None]
    return part.value if isinstance(part, OpaquePart) and isinstance(part.value, dict) else {}


def _read_content(
    value: JsonValue, path: str, role: str, *, lenient: bool
) -> tuple[str | list[Part] | None, dict[str, JsonValue]]:
    """Content and its part of the residual: `take` is its number of parts, absent for a text."""
    if value is None:
        return None, {"take": None}
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, list):
        raise wrong(path, "text or a list of parts", value)
    parts, notes = by_index(read_part(part, f"{path}[{idx}]", role, lenient=lenient) for idx, part in enumerate(value))
    return parts, {"take": len(parts), "parts": notes} if notes else {"take": len(parts)}


def _content_field(key: str, held: Held, entry: JsonValue) -> Source:
    """The content under its key; empty if there is none."""
    if held.content is None:
        return {}
    if isinstance(held.content, str):
        return {key: held.content}
    written = (write_part(part, held.role, nested(entry, "parts", str(idx))) for idx, part in enumerate(held.content))
    return {key: [part for part in written if part is not None]}


def _form(kind: str, usual: str) -> dict[str, JsonValue]:
    return {} if kind == usual else {"form": kind}


_READERS: dict[str, Callable[[Source, str, bool], ReadItem]] = {
    MESSAGE: _read_message,
    REASONING: _read_reasoning,
    **dict.fromkeys(ARGUMENTS, _read_call),
    **dict.fromkeys(_CALL_OF, _read_output),
}
_WRITERS: dict[str, Callable[[Held, JsonValue], Source]] = {
    MESSAGE: _write_message,
    INSTRUCTIONS: _write_message,
    REASONING: _write_reasoning,
    CALL: _write_call,
    OUTPUT: _write_output,
    OPAQUE: _write_opaque,
}
