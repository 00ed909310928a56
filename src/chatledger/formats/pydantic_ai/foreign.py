"""Fits messages of other formats to this format, which then writes them like its own.

It leaves out custom messages, parts that only another format can read, ids of uploads, and media of assistant messages
that have no data.
"""

from __future__ import annotations

from chatledger.formats.pydantic_ai.names import NAME
from chatledger.formats.wire.parts import Medium, id_of, signed_by, signer_of, split_data_uri, thoughts_of
from chatledger.models import ChatMessage, MediaPart, Part, TextPart, ThinkPart
from chatledger.models.base import build

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that is not sent to a model.

    A message of the format itself is returned unchanged.
    """
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    role = _ROLES.get(message.role, "user")
    is_result = role == "tool"
    return build(
        ChatMessage,
        {
            "role": role,
            "content": _fit_content(message, role),
            "tool_calls": message.tool_calls if role == "assistant" else None,
            "tool_call_id": message.tool_call_id if is_result else None,
            "name": message.name if is_result else None,
            "is_error": message.is_error if is_result else None,
            "created_at": message.created_at,
            "seq": message.seq,
        },
    )


def _fit_content(message: ChatMessage, role: str) -> str | list[Part] | None:
    reasoning = message.reasoning if role == "assistant" else None
    thoughts: list[Part] = [_fit_thought(part, message.format) for part in thoughts_of(reasoning)]
    if not isinstance(message.content, list):
        if thoughts:
            return [*thoughts, *([TextPart(text=message.content)] if message.content else [])]
        return message.content
    if role == "system":
        return message.text
    parts = [fitted for part in message.content if (fitted := _fit_part(part, role, message.format)) is not None]
    if role == "tool" and not any(isinstance(part, MediaPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return thoughts + parts


def _fit_part(part: Part, role: str, source_format: str | None) -> Part | None:
    if isinstance(part, TextPart):
        return TextPart(text=part.text)
    if isinstance(part, ThinkPart):
        return _fit_thought(part, source_format) if role == "assistant" else None
    return _fit_medium(part, role) if isinstance(part, MediaPart) else None


def _fit_thought(part: ThinkPart, source_format: str | None) -> ThinkPart:
    """The thought with the provider that signed it: the framework sends a signature only to that provider."""
    signer = signer_of(part, source_format if part.signature is not None else None)
    return ThinkPart(text=part.text, signature=part.signature, extras=signed_by(signer, id_of(part)))


def _fit_medium(part: Medium, role: str) -> Medium | None:
    """A medium with data, or with a URL if it is for the model. A data URI counts as data."""
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    if part.data is not None:
        return part.model_copy(update={"name": None, "id": None, "url": None, "extras": None})
    if split is not None:
        return type(part).model_validate({"mime_type": split[0] or part.mime_type, "data": split[1]})
    if part.url is None or role == "assistant":
        return None
    return type(part).model_validate({"url": part.url, "mime_type": part.mime_type})
