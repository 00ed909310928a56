"""Fits messages of other formats to this format, which then writes them like its own.

It leaves out custom messages, parts that only another format can read, and media with only an id. It keeps the
signatures that the framework's clients send to the right provider: Anthropic's, which have no id, and OpenAI's with
their id. The framework does not record the provider of a signature.
"""

from __future__ import annotations

from chatledger.formats.agent_framework.parts import NAME, ROLES
from chatledger.formats.wire.parts import (
    ANTHROPIC,
    OPENAI,
    Medium,
    id_of,
    signed_by,
    signer_of,
    split_data_uri,
    thoughts_of,
)
from chatledger.models import ChatMessage, MediaPart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build, copy_with


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that is not sent to a model.

    A message of the format itself is returned unchanged.
    """
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    # The framework has no role developer, and a client reads an unknown role as user.
    role = {"developer": "system", "tool": "tool"}.get(message.role, message.role if message.role in ROLES else "user")
    is_result = role == "tool"
    return build(
        ChatMessage,
        {
            "role": role,
            "content": _fit_content(message, role),
            "tool_calls": _fit_calls(message) if role == "assistant" else None,
            "tool_call_id": message.tool_call_id if is_result else None,
            "name": None if is_result else message.name,
            "is_error": message.is_error if is_result else None,
            "seq": message.seq,
        },
    )


def _fit_calls(message: ChatMessage) -> list[ToolCall] | None:
    calls = [copy_with(call, {"extras": None}) for call in message.tool_calls or ()]
    return calls or None


def _fit_content(message: ChatMessage, role: str) -> str | list[Part] | None:
    reasoning = message.reasoning if role == "assistant" else None
    thoughts: list[Part] = [_fit_thought(part, message.format) for part in thoughts_of(reasoning)]
    if isinstance(message.content, list):
        fitted = (_fit_part(part, role, message.format) for part in message.content)
        return thoughts + [part for part in fitted if part is not None]
    # Providers reject an empty text beside a call or a thought.
    alone = not thoughts and not (role == "assistant" and message.tool_calls)
    text = message.content if message.content or alone else None
    if not thoughts:
        return text
    return [*thoughts, *([] if text is None else [TextPart(text=text)])]


def _fit_part(part: Part, role: str, source_format: str | None) -> Part | None:
    if isinstance(part, TextPart):
        return TextPart(text=part.text)
    if isinstance(part, ThinkPart):
        return _fit_thought(part, source_format) if role == "assistant" else None
    return _fit_medium(part) if isinstance(part, MediaPart) else None


def _fit_thought(part: ThinkPart, source_format: str | None) -> ThinkPart:
    """The thought, with its signature if the framework sends it only to the provider that made it."""
    signer, id_ = signer_of(part, source_format), id_of(part)
    if part.signature is None:
        return ThinkPart(text=part.text)
    if signer == OPENAI and id_ is not None:
        return ThinkPart(text=part.text, signature=part.signature, extras=signed_by(signer, id_))
    if signer == ANTHROPIC or (signer is None and source_format is None):
        return ThinkPart(text=part.text, signature=part.signature, extras=signed_by(signer))
    return ThinkPart(text=part.text)


def _fit_medium(part: Medium) -> Medium | None:
    """A medium with a URL or data; None for an id, which is valid only for the provider that received the upload."""
    if part.url is not None:
        split = split_data_uri(part.url)
        mime_type = part.mime_type if part.mime_type is not None or split is None else split[0] or None
        return part.model_copy(update={"data": None, "id": None, "extras": None, "mime_type": mime_type})
    if part.data is None:
        return None
    return part.model_copy(update={"id": None, "extras": None})
