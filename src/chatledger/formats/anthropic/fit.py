"""Messages of other origin as messages that the API can take.

Only models come and go here: what fits is then written as a message of the format itself is. What has no place is left
out: custom messages, reasoning that nobody signed, audio and video, parts that only another format understands.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatledger.formats.anthropic.fit_parts import fit_part
from chatledger.formats.anthropic.names import NAME
from chatledger.models import ChatMessage, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import JsonValue, dumps, json_problem, loads

RAW = "_raw"
"""The one key of an input that was no object."""
_INPUT_DEPTH = 480  # of the 500 that a payload may nest, as the input stands a few levels down

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message with nothing that cannot be said; None for one that no model sees. One of the format is as it is."""
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    role = _ROLES.get(message.role, "user")
    calls = [_fit_call(call) for call in message.tool_calls or ()] if role == "assistant" else []
    return ChatMessage(
        role=role,
        content=_fit_content(message, role, bool(calls)),
        tool_calls=calls or None,
        tool_call_id=message.tool_call_id if role == "tool" else None,
        name=message.name if role == "tool" else None,
        is_error=message.is_error if role == "tool" else None,
        seq=message.seq,
    )


def _fit_content(message: ChatMessage, role: str, has_calls: bool) -> str | list[Part] | None:
    """The content; beside calls, and of a result, there may be none at all."""
    thinking = list(_signed(message.reasoning)) if role == "assistant" else []
    if isinstance(message.content, list):
        fitted = (fit_part(part, role) for part in message.content)
        parts = thinking + [part for part in fitted if part is not None]
        return None if has_calls and not parts else parts
    if thinking:
        return [*thinking, *([TextPart(text=message.content)] if message.content else [])]
    if has_calls:
        return message.content or None
    return message.content if role == "tool" else message.content or ""


def _signed(reasoning: str | list[Part] | None) -> Iterator[Part]:
    """Reasoning that the API would take back: it wants the signature that it gave."""
    for part in reasoning if isinstance(reasoning, list) else ():
        if isinstance(part, ThinkPart) and part.signature is not None:
            yield part


def _fit_call(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"arguments": _fit_arguments(call.arguments), "extras": None})


def _fit_arguments(arguments: str | dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """An object: the API takes nothing else. What is none stands under one key, as text."""
    value = _parsed(arguments) if isinstance(arguments, str) else arguments or {}
    if isinstance(value, dict) and json_problem(value, max_depth=_INPUT_DEPTH) is None:
        return value
    return {RAW: arguments if isinstance(arguments, str) else dumps(arguments)}


def _parsed(text: str) -> JsonValue:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
