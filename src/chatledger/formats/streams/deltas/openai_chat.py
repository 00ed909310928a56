"""Chunks of OpenAI chat completions, and of the many servers that imitate them.

Other servers add `reasoning_content` or `reasoning`. A refusal counts as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.parts import read_part
from chatledger.formats.streams.events import Event, field, some_text
from chatledger.models import Delta, ReasoningDelta, TextDelta, ToolCallDelta


def read_chat_deltas(event: Event) -> Sequence[Delta]:
    deltas: list[Delta] = []
    for number, choice in enumerate(field(event, "choices", list, "$") or ()):
        path = f"$.choices[{number}]"
        if isinstance(choice, dict) and choice.get("index") in (None, 0):  # a draft is one message
            deltas += _read_delta(field(choice, "delta", dict, path) or {}, f"{path}.delta")
    return deltas


def _read_delta(delta: Event, path: str) -> list[Delta]:
    found: list[Delta] = []
    reasoning = some_text(delta, "reasoning_content", path) or some_text(delta, "reasoning", path)
    if reasoning is not None:
        found.append(ReasoningDelta(text=reasoning))
    if isinstance(delta.get("content"), list):  # from models that reason inside their content
        parts = (read_part(part, f"{path}.content", lenient=False) for part in delta["content"])
        found += [part for part, _ in parts]
        delta = {key: value for key, value in delta.items() if key != "content"}
    for key in ("content", "refusal"):
        text = some_text(delta, key, path)
        if text is not None:
            found.append(TextDelta(text=text))
    for number, call in enumerate(field(delta, "tool_calls", list, path) or ()):
        found.append(_read_call(call, f"{path}.tool_calls[{number}]"))
    legacy = field(delta, "function_call", dict, path)
    if legacy is not None:
        found.append(_named(legacy, f"{path}.function_call"))
    return found


def _read_call(call: object, path: str) -> ToolCallDelta:
    if not isinstance(call, dict):
        raise DecodeError(path, f"expected a dict, not {type(call).__name__}")
    function = field(call, "function", dict, path)
    custom = field(call, "custom", dict, path)
    named = _named(function or {}, f"{path}.function") if custom is None else _custom(custom, f"{path}.custom")
    return named.model_copy(update={"index": field(call, "index", int, path), "id": some_text(call, "id", path)})


def _named(function: Event, path: str) -> ToolCallDelta:
    return ToolCallDelta(name=some_text(function, "name", path), arguments=field(function, "arguments", str, path))


def _custom(custom: Event, path: str) -> ToolCallDelta:
    return ToolCallDelta(name=some_text(custom, "name", path), arguments=field(custom, "input", str, path))
