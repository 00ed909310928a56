"""Fits messages of other formats to this format, which then writes them like its own.

It leaves out custom messages, parts that only another format can read, media of results and of system messages, and
media without an address or data.
"""

from __future__ import annotations

from chatledger.formats.ai_sdk.names import NAME
from chatledger.formats.ai_sdk.parts import encoded_part
from chatledger.formats.wire.arguments import as_object
from chatledger.formats.wire.parts import id_of, signed_by, signer_of, thoughts_of
from chatledger.models import ChatMessage, MediaPart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that no reader of the chat sees.

    A message of the format itself is returned unchanged.
    """
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    role = _ROLES.get(message.role, "user")
    is_result, is_answer = role == "tool", role == "assistant"
    return build(
        ChatMessage,
        {
            "message_id": message.message_id,
            "role": role,
            "content": _fit_content(message, role),
            "tool_calls": _fit_calls(message.tool_calls or ()) if is_answer else None,
            "tool_call_id": message.tool_call_id if is_result else None,
            "name": message.name if is_result else None,
            "is_error": message.is_error if is_result else None,
            "custom_data": message.custom_data,
            "seq": message.seq,
        },
    )


def _fit_calls(calls: tuple[ToolCall, ...] | list[ToolCall]) -> list[ToolCall] | None:
    """The calls that have a name, with their arguments as an object if they are one."""
    return [call.model_copy(update={"arguments": _fit_arguments(call)}) for call in calls if call.name] or None


def _fit_arguments(call: ToolCall) -> object:
    value = as_object(call.arguments)
    return call.arguments if value is None else value


def _fit_content(message: ChatMessage, role: str) -> str | list[Part] | None:
    if role == "tool" and isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if isinstance(part, TextPart))
    if role != "assistant":
        return _fit_question(message, role)
    thoughts: list[Part] = [_fit_thought(part, message.format) for part in thoughts_of(message.reasoning)]
    if isinstance(message.content, list):
        fitted = (_fit_part(part, role, message.format) for part in message.content)
        return thoughts + [part for part in fitted if part is not None]
    return [*thoughts, TextPart(text=message.content)] if message.content is not None else thoughts or None


def _fit_question(message: ChatMessage, role: str) -> str | list[Part] | None:
    """The SDK accepts no message without parts, except the assistant's."""
    if not isinstance(message.content, list):
        return message.content if role == "tool" else message.content or ""
    parts = [fitted for part in message.content if (fitted := _fit_part(part, role, message.format)) is not None]
    return parts or ""


def _fit_part(part: Part, role: str, source_format: str | None) -> Part | None:
    if isinstance(part, TextPart):
        return TextPart(text=part.text)
    if isinstance(part, ThinkPart):
        return _fit_thought(part, source_format) if role == "assistant" else None
    is_file = isinstance(part, MediaPart) and role != "system" and encoded_part(part, of_assistant=False) is not None
    return part if is_file else None


def _fit_thought(part: ThinkPart, source_format: str | None) -> ThinkPart:
    """The thought with the provider that signed it: the SDK sends a signature only to that provider."""
    signer = signer_of(part, source_format if part.signature is not None else None)
    return ThinkPart(text=part.text, signature=part.signature, extras=signed_by(signer, id_of(part)))
