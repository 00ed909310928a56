"""Fits messages of other formats to LangChain's messages, one for each.

The result is a `ChatMessage`, which is then written like a message of the format itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.langchain.parts import SUMMARY, THINKING
from chatledger.formats.langchain.write import DATA, NAME, PARTS
from chatledger.formats.wire.call_pairs import Answered, made_id
from chatledger.formats.wire.parts import ANTHROPIC, OPENAI, signer_of, thoughts_of
from chatledger.formats.wire.residual import EXTRA, FORM
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build
from chatledger.models.json import JsonObject

_FORMS = {ANTHROPIC: THINKING, OPENAI: SUMMARY}
"""The form of signed reasoning that only the integration of its provider accepts."""


def fit(message: ChatMessage, position: int, call_ids: Sequence[str], answered: Answered | None) -> ChatMessage:
    """The message without what the format cannot hold. `call_ids` are the ids of its calls, own or generated."""
    parts, forms = _fit_content(message)
    residual: JsonObject = {PARTS: forms} if forms else {}
    if message.message_id is not None:
        residual[DATA] = {EXTRA: {"id": message.message_id}}
    return build(
        ChatMessage,
        {
            "role": message.role,
            "content": parts,
            "reasoning": message.reasoning if isinstance(message.reasoning, str) else None,
            "name": message.name,
            "tool_calls": _fit_calls(message, call_ids),
            "tool_call_id": _answered_id(message, position, answered),
            "is_error": message.is_error,
            "response_metadata": message.response_metadata,
            "format": NAME,
            "residual": residual or None,
        },
    )


def _fit_calls(message: ChatMessage, call_ids: Sequence[str]) -> list[ToolCall] | None:
    if not message.tool_calls or message.role != "assistant":
        return None
    pairs = zip(message.tool_calls, call_ids, strict=True)
    return [ToolCall(id=call_id, name=call.name, arguments=call.arguments) for call, call_id in pairs]


def _answered_id(message: ChatMessage, position: int, answered: Answered | None) -> str | None:
    """The id of the call that a result answers: LangChain requires one."""
    if message.tool_call_id is not None or message.role != "tool":
        return message.tool_call_id
    return made_id(message, position) if answered is None else answered.id


def _fit_content(message: ChatMessage) -> tuple[str | list[Part], JsonObject]:
    """The content, with reasoning in parts before it, and the residuals of signed reasoning by index."""
    thoughts = message.reasoning if isinstance(message.reasoning, list) and message.role == "assistant" else []
    if isinstance(message.content, list):
        content = [part for part in message.content if not isinstance(part, OpaquePart)]
    elif not thoughts:
        return message.content or "", {}
    else:
        content = [TextPart(text=message.content)] if message.content else []
    parts: list[Part] = [*thoughts_of(thoughts), *content]
    signed = {idx: part for idx, part in enumerate(parts) if isinstance(part, ThinkPart) and part.signature}
    forms = {str(idx): _FORMS.get(signer_of(part, message.format) or "") for idx, part in signed.items()}
    return parts, {idx: {FORM: form} for idx, form in forms.items() if form is not None}
