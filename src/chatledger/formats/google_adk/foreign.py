"""Fits messages of other formats to events, which are then written like those of the format itself.

It leaves out instructions, which an ADK agent has itself, custom messages, parts that only another format can read, and
ids of uploads.
"""

from __future__ import annotations

from collections.abc import Sequence
from mimetypes import guess_type

from chatledger.formats.google_adk.parts import MODEL, is_base64
from chatledger.formats.wire.call_pairs import Answered, made_id
from chatledger.formats.wire.parts import GOOGLE, Medium, signed_by, signer_of, split_data_uri, thoughts_of
from chatledger.models import LENIENT, ChatMessage, MediaPart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import MAX_DEPTH, json_problem, read_text

_ROLES = ("user", "assistant", "tool")
_DEPTH = MAX_DEPTH - 16


def fit(message: ChatMessage, position: int, call_ids: Sequence[str], answered: Answered | None) -> ChatMessage | None:
    """The message without what an event cannot hold; None for a message that no event can hold. `call_ids` are the ids
    of its calls, own or generated.
    """
    if message.role not in _ROLES:
        return None
    is_result = message.role == "tool"
    call_id, name = message.tool_call_id, message.name
    if is_result:
        call_id = call_id or (made_id(message, position) if answered is None else answered.id)
        name = name or (None if answered is None else answered.call.name)
    return ChatMessage.model_validate(
        {
            "role": message.role,
            "content": _fit_content(message),
            "name": None if message.role == "user" or (name == MODEL and not is_result) else name,
            "tool_calls": _fit_calls(message, call_ids),
            "tool_call_id": call_id if is_result else None,
            "is_error": message.is_error if is_result else None,
            "response_metadata": None if is_result else message.response_metadata,
            "message_id": message.message_id,
            "created_at": message.created_at,
            "run_id": message.run_id,
            "seq": message.seq,
        },
        context=LENIENT,
    )


def _fit_calls(message: ChatMessage, call_ids: Sequence[str]) -> list[ToolCall] | None:
    if not message.tool_calls or message.role != "assistant":
        return None
    pairs = zip(message.tool_calls, call_ids, strict=True)
    return [ToolCall(id=call_id, name=call.name, arguments=_fit_arguments(call)) for call, call_id in pairs]


def _fit_arguments(call: ToolCall) -> object:
    """An object; the text itself if it is not a JSON object."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        value = read_text(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    is_kept = isinstance(value, dict) and json_problem(value, max_depth=_DEPTH) is None
    return value if is_kept else call.arguments


def _fit_content(message: ChatMessage) -> str | list[Part] | None:
    reasoning = message.reasoning if message.role == "assistant" else None
    thoughts: list[Part] = [_fit_thought(part, message) for part in thoughts_of(reasoning)]
    if not isinstance(message.content, list):
        if not thoughts:
            return message.content
        return [*thoughts, *([TextPart(text=message.content)] if message.content else [])]
    parts = [fitted for part in message.content if (fitted := _fit_part(part, message)) is not None]
    return thoughts + parts


def _fit_part(part: Part, message: ChatMessage) -> Part | None:
    if isinstance(part, TextPart):
        return TextPart(text=part.text)
    if isinstance(part, ThinkPart):
        return _fit_thought(part, message) if message.role == "assistant" else None
    return _fit_medium(part) if isinstance(part, MediaPart) else None


def _fit_thought(part: ThinkPart, message: ChatMessage) -> ThinkPart:
    """The thought, with its signature if Google made it or its signer is unknown. ADK sends a signature to any model,
    and Google's models would reject another provider's.
    """
    signer = signer_of(part, message.format)
    is_googles = signer is None or signer.startswith(GOOGLE)
    if part.signature is None or not is_googles or not is_base64(part.signature):
        return ThinkPart(text=part.text)
    return ThinkPart(text=part.text, signature=part.signature, extras=signed_by(GOOGLE if signer else None))


def _fit_medium(part: Medium) -> Medium | None:
    """A medium with data or a URL. A data URI counts as data. Google requires a MIME type for a URL, so a missing one
    is guessed from the file name.
    """
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    if split is not None:
        fields = {"mime_type": split[0] or part.mime_type, "data": split[1]}
    elif part.data is not None:
        fields = {"mime_type": part.mime_type, "data": part.data}
    elif part.url is not None:
        fields = {"mime_type": part.mime_type or guess_type(part.url)[0], "url": part.url}
    else:
        return None
    return type(part).model_validate({**fields, "name": part.name})
