"""Fits messages of any format to kosong, by their typed fields alone.

One turn of an assistant is one kosong message. If another format has separate messages for reasoning, text and each
call, the messages of one run and name are merged. A message of the revision itself is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from chatledger.formats.kosong.parts import PARTIAL, ROLES, KosongRevision, of_family, residual_of, type_of
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from chatledger.models.base import copy_with
from chatledger.models.json import dumps

Content = str | list[Part] | None


def adapt(
    messages: Sequence[ChatMessage], revision: KosongRevision, *, records: bool = False
) -> list[tuple[ChatMessage, tuple[int, ...]]]:
    """The messages to write, in order, each with the indexes of its original messages.

    Messages of the revision stay unchanged. Control records of a context file are left out unless `records` is true.
    """
    pairing = Pairing()
    adapted: list[tuple[ChatMessage, tuple[int, ...]]] = []
    before: ChatMessage | None = None
    for index, message in enumerate(messages):
        as_record = records and is_record(message)
        fitted = message if as_record else adapt_message(message, revision, pairing, index + 1)
        if fitted is None:
            continue
        if before is not None and _is_one_turn(before, message):
            first, origins = adapted.pop()
            adapted.append((_merged(first, fitted), (*origins, index)))
        else:
            adapted.append((fitted, (index,)))
        before = message
    return adapted


def adapt_message(message: ChatMessage, revision: KosongRevision, pairing: Pairing, place: int) -> ChatMessage | None:
    """The message as the revision can express it; None for a custom message."""
    ids = pairing.ask(message, place)
    answered = pairing.answer(message) if message.role == "tool" else None
    if is_record(message):
        return None
    if message.format == revision.name:
        return message
    role = _role(message)
    if role is None:
        return None
    changes = {
        "role": role,
        "content": _content(message, revision),
        "reasoning": None,
        "tool_calls": _calls(message, ids),
        "tool_call_id": message.tool_call_id if answered is None else answered.id,
        "format": revision.name,
        "residual": _kept_residual(message),
    }
    return copy_with(message, changes)


def is_record(message: ChatMessage) -> bool:
    """Whether the message is a control record of a context file, which is never sent to a model."""
    return message.role == "custom" and of_family(message) and message.custom_data is not None


def _role(message: ChatMessage) -> str | None:
    if message.role in ROLES:
        return message.role
    if message.role == "custom":  # the agent service stores system messages like this, because it has no such role
        held = (message.custom_data or {}).get("role")
        if isinstance(held, str) and held in ROLES:
            return held
        return None
    return "system" if message.role == "developer" else "user"


def _kept_residual(message: ChatMessage) -> dict[str, bool] | None:
    """The flag `partial`, which both revisions have. Only its own format can read the rest of a residual."""
    partial = residual_of(message).get(PARTIAL)
    return None if partial is None else {PARTIAL: partial}


def _content(message: ChatMessage, revision: KosongRevision) -> Content:
    own = of_family(message)
    content = message.content
    if isinstance(content, list):
        content = [adapted for part in content for adapted in adapt_part(part, revision, own=own)]
    if message.reasoning is None:
        return content
    return adapt_reasoning(message.reasoning, revision) + _as_parts(content)


def _as_parts(content: Content) -> list[Part]:
    if isinstance(content, list):
        return content
    return [TextPart(text=content)] if content else []


def _calls(message: ChatMessage, ids: list[str]) -> list[ToolCall] | None:
    if message.tool_calls is None:
        return None
    return [_call(call, id_) for call, id_ in zip(message.tool_calls, ids, strict=True)]


def _call(call: ToolCall, id_: str) -> ToolCall:
    arguments = dumps(call.arguments) if isinstance(call.arguments, dict) else call.arguments
    return ToolCall.model_construct(id=id_, name=call.name, arguments=arguments, extras=call.extras)


def _is_one_turn(before: ChatMessage, message: ChatMessage) -> bool:
    return (
        before.role == message.role == "assistant"
        and not of_family(before)
        and not of_family(message)
        and (before.run_id, before.name, before.state) == (message.run_id, message.name, message.state)
    )


def _merged(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    parts = _as_parts(first.content) + _as_parts(second.content)
    is_text = len(parts) == 1 and isinstance(parts[0], TextPart)
    calls = [*(first.tool_calls or ()), *(second.tool_calls or ())]
    changes = {
        "content": parts[0].text if is_text and isinstance(parts[0], TextPart) else parts or "",
        "tool_calls": None if first.tool_calls is second.tool_calls is None else calls,
    }
    return first.model_copy(update=changes)


Medium: TypeAlias = ImagePart | AudioPart | VideoPart | FilePart

FRAMES = "frames"  # the extras key of a video that is a list of images


def adapt_part(part: Part, revision: KosongRevision, *, own: bool) -> list[Part]:
    """The parts that a part becomes: several for the frames of a video, none for a part that kosong cannot express."""
    if isinstance(part, OpaquePart):
        return [part] if own else []
    if isinstance(part, VideoPart) and _frames(part):
        return [ImagePart(url=frame) for frame in _frames(part)]
    if isinstance(part, (ImagePart, AudioPart, VideoPart, FilePart)):
        return [_medium(part, revision)]
    return [part.model_copy(update={"extras": None})]


def adapt_reasoning(reasoning: str | list[Part], revision: KosongRevision) -> list[Part]:
    """The parts of the field `reasoning`. Empty reasoning becomes an empty part."""
    if isinstance(reasoning, str):
        return [ThinkPart(text=reasoning)]
    adapted = [adapted_part for part in reasoning for adapted_part in adapt_part(part, revision, own=False)]
    return [ThinkPart(text=part.text) if isinstance(part, TextPart) else part for part in adapted]


def _frames(part: VideoPart) -> list[str]:
    frames = (part.extras or {}).get(FRAMES)
    return [frame for frame in frames if isinstance(frame, str)] if isinstance(frames, list) else []


def _medium(part: Medium, revision: KosongRevision) -> Part:
    url = _url(part)
    can_be_written = not isinstance(part, FilePart) and (revision.has_videos or not isinstance(part, VideoPart))
    if url is None or not can_be_written:
        return TextPart(text=_as_link(part))
    return part.model_copy(update={"url": url, "data": None, "mime_type": None, "name": None, "extras": None})


def _url(part: Medium) -> str | None:
    if part.url is not None or part.data is None:
        return part.url
    return f"data:{part.mime_type or 'application/octet-stream'};base64,{part.data}"


def _as_link(part: Medium) -> str:
    """A medium as text, as Qwen-Agent writes a file. Its data is left out, because a model does not read base64."""
    return f"[{type_of(part).removesuffix('_url')}]({part.url or part.name or part.id or ''})"
