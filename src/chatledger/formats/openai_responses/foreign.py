"""Fits messages of other formats, and messages that a program created or edited, to items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from chatledger.formats.openai_responses.items import CALL, CUSTOM_CALL, FUNCTION_CALL, OUTPUT_OF, ROLES, Source
from chatledger.formats.openai_responses.parts import write_part, write_thought
from chatledger.formats.openai_responses.write import ITEMS, NAME
from chatledger.formats.wire.call_pairs import Answered, made_id
from chatledger.formats.wire.parts import OPENAI, id_of, signer_of, thoughts_of
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, FilePart, ImagePart, MediaPart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import JsonValue, dumps

_FILE_ID_FORMATS = (None, "openai-chat", "openai-responses")
"""The formats whose file ids are valid here: an upload belongs to the provider that received it."""
_MEDIA_ROLES = ("user", "tool")
"""The roles whose messages may hold images and files."""


def fit(message: ChatMessage, position: int, answered: Answered | None) -> list[Source]:
    """The items of a message: several for an assistant's, none for a message that is not sent to a model."""
    if message.role == "custom":
        return []
    if message.role == "tool":
        return [_output_item(message, position, answered)]
    if message.role == "assistant":
        return list(_assistant_items(message, position)) or [{"role": "assistant", "content": ""}]
    role = message.role if message.role in ROLES else "user"
    return [{"role": role, "content": _content(message, role)}]


def _output_item(message: ChatMessage, position: int, answered: Answered | None) -> Source:
    call_id = message.tool_call_id
    if call_id is None:
        call_id = made_id(message, position) if answered is None else answered.id
    form = FUNCTION_CALL if answered is None or message.format == NAME else _form_of(answered)
    return {"type": OUTPUT_OF[form], "call_id": call_id, "output": _content(message, "tool")}


def _form_of(answered: Answered) -> str:
    """The type that the call has in the payload."""
    entries = nested(answered.asker.residual, ITEMS) if answered.asker.format == NAME else None
    calls = [entry for entry in entries or () if nested(entry, "kind") == CALL] if isinstance(entries, list) else []
    idx = answered.call.idx
    return CUSTOM_CALL if idx < len(calls) and calls[idx].get("form") == CUSTOM_CALL else FUNCTION_CALL


def _content(message: ChatMessage, role: str) -> JsonValue:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return _parts(message.content, role, message.format)


def _parts(parts: list[Part], role: str, source_format: str | None) -> list[JsonValue]:
    fitted = (_fit_part(part, role=role, source_format=source_format) for part in parts)
    return [write_part(part, role) for part in fitted if part is not None]


def _fit_part(part: Part, *, role: str, source_format: str | None) -> Part | None:
    """The part in a form for the role; None if there is none."""
    if isinstance(part, TextPart):
        return part
    if role not in _MEDIA_ROLES or not isinstance(part, (ImagePart, FilePart)):
        return None
    fitted = _with_own_id(part, source_format)
    return None if write_part(fitted, role) is None else fitted


def _with_own_id(part: MediaPart, source_format: str | None) -> Part:
    fitted = part if source_format in _FILE_ID_FORMATS else part.model_copy(update={"id": None})
    assert isinstance(fitted, (ImagePart, FilePart))
    return fitted


def _assistant_items(message: ChatMessage, position: int) -> Iterator[Source]:
    """The thoughts of the assistant, then its texts, then its calls."""
    seq = position if message.seq is None else message.seq
    for idx, part in enumerate(thoughts_of(message.reasoning)):
        yield _thought_item(part, f"rs_{seq}_r{idx}", message)
    if isinstance(message.content, list):
        yield from _content_items(message.content, seq, message)
    elif message.content:
        yield {"role": "assistant", "content": message.content}
    for idx, call in enumerate(message.tool_calls or ()):
        yield _call_item(call, made_id(message, position, idx))


def _content_items(parts: list[Part], seq: int, message: ChatMessage) -> Iterator[Source]:
    """Thoughts as separate items, and the parts between them as one message each."""
    runs = groupby(enumerate(parts), key=lambda entry: isinstance(entry[1], ThinkPart))
    for _, run in runs:
        indexed = list(run)
        idx = indexed[0][0]
        for position, part in indexed:
            if isinstance(part, ThinkPart):
                yield _thought_item(part, f"rs_{seq}_{position}", message)
        written = _parts([part for _, part in indexed], "assistant", message.format)
        if written:
            yield _message_item(written, f"msg_{seq}_{idx}")


def _message_item(content: list[JsonValue], made_id: str) -> Source:
    return {"type": "message", "id": made_id, "status": "completed", "role": "assistant", "content": content}


def _thought_item(part: ThinkPart, made_id: str, message: ChatMessage) -> Source:
    """The item of a thought. OpenAI checks that it made the signature, and that it belongs to the id of the item."""
    signer = signer_of(part, message.format)
    if signer != OPENAI and (signer is not None or message.format is not None):
        return {"id": made_id, **write_thought(ThinkPart(text=part.text))}
    return {"id": id_of(part) or made_id, **write_thought(ThinkPart(text=part.text, signature=part.signature))}


def _call_item(call: ToolCall, made_id: str) -> Source:
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments or {})
    call_id = made_id if call.id is None else call.id
    return {"type": FUNCTION_CALL, "call_id": call_id, "name": call.name, "arguments": arguments}
