"""Repairs for OpenAI's chat completions, which accept neighbours of one role, and system messages anywhere."""

from __future__ import annotations

import re

from chatledger.formats.model_view import repairs, request_keys
from chatledger.formats.model_view.message import with_objects, with_text
from chatledger.formats.model_view.provider import Provider, RequestKeys
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.formats.openai_chat.foreign import fit_part
from chatledger.formats.openai_chat.parts import CUSTOM, audio_object
from chatledger.formats.openai_chat.write import NAME, is_function_call, is_function_result, write_message
from chatledger.formats.wire.residual import nested
from chatledger.models import AudioPart, ChatMessage, Part
from chatledger.models.base import copy_with

_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
_AUDIO = ("wav", "mp3")
_FUNCTION = "function"
_KINDS = (_FUNCTION, CUSTOM)
_OTHER_CONTENT = ("refusal", "audio", "function_call")
"""The keys that an assistant may have instead of content and tool calls."""
_KEYS = request_keys.OPENAI_CHAT
_TABLE = {**_KEYS, ".tool_calls": _KEYS["function"]}  # without a type it is a call of a function
_BESIDES = {
    "assistant message": "reasoning_content reasoning_details",
    "function": "extra_content",
}
"""The keys that servers need back beside those of OpenAI. DeepSeek and Kimi refuse calls without the
`reasoning_content` that led to them, OpenRouter passes `reasoning_details` on to models that require them, and Gemini
refuses a call without the signature in its `extra_content`.
"""


def _fit(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Repairs a message of the format itself. The codec fits messages of other formats."""
    message = _without_odd_audio(message, log)
    if message.format == NAME:
        message = _with_content(_with_calls(_with_speaker(message, log), log), log)
    return _with_arguments(message, log)


def _without_odd_audio(message: ChatMessage, log: RepairLog) -> ChatMessage:
    parts = message.content if isinstance(message.content, list) else []
    written = message.role == "user" or message.format == NAME  # otherwise the codec leaves it out
    if not written or not any(_is_odd_audio(part, message.format) for part in parts):
        return message
    log.add(repairs.MEDIA, message, "audio that is neither wav nor mp3: left out")
    return rewritten(message, content=[part for part in parts if not _is_odd_audio(part, message.format)])


def _is_odd_audio(part: Part, source_format: str | None) -> bool:
    """Whether the part would be written as audio of an unknown format."""
    if not isinstance(part, AudioPart):
        return False
    fitted = part
    if source_format != NAME:
        converted = fit_part(part, role="user", source_format=source_format)
        if not isinstance(converted, AudioPart):
            return False
        fitted = converted
    audio = audio_object(fitted)
    return audio is not None and audio.get("format") not in _AUDIO


def _with_speaker(message: ChatMessage, log: RepairLog) -> ChatMessage:
    if message.name is None or message.role == "tool" or _SPEAKER.fullmatch(message.name):
        return message
    log.add(repairs.NAME, message, f"name {message.name[:80]!r} is not accepted: left out")
    return copy_with(message, {"name": None})


def _with_calls(message: ChatMessage, log: RepairLog) -> ChatMessage:
    if message.tool_calls == []:
        log.add(repairs.EMPTY, message, "an empty list of tool calls: left out")
        return rewritten(message, tool_calls=None)
    calls = message.tool_calls or []
    written = _written_calls(message)
    if len(written) != len(calls):
        log.add(repairs.NAME, message, "a call without a name: left out")
        message = rewritten(message)
    elif any(kind not in _KINDS for kind in written):
        log.add(repairs.ARGUMENTS, message, "a call of an unknown type: written as a function call")
        message = rewritten(message)
    if all(isinstance(call.arguments, str) for call in calls):
        return message
    log.add(repairs.ARGUMENTS, message, "arguments that are not text: written as JSON text")
    return rewritten(message, tool_calls=list(map(with_text, calls)))


def _with_arguments(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Repairs the arguments of functions. A call is written as a call of a custom tool only if it came in this format
    with an id.
    """
    calls = message.tool_calls or []
    is_kept = message.format == NAME and all(call.id is not None for call in calls)
    kinds = _written_calls(message) if is_kept else [_FUNCTION] * len(calls)
    return with_objects(message, [kind == _FUNCTION for kind in kinds], log)


def _written_calls(message: ChatMessage) -> list[str]:
    """The types of the calls that are written, including calls without a name, which lenient rules accept."""
    wire = write_message(message)
    legacy = [_FUNCTION] if wire.get("function_call") is not None else []
    return [call.get("type") or _FUNCTION for call in wire.get("tool_calls") or ()] + legacy


def _with_content(message: ChatMessage, log: RepairLog) -> ChatMessage:
    if message.role != "assistant" and nested(message.residual, "spelled", "content") is not None:
        log.add(repairs.EMPTY, message, "a refusal or audio outside an assistant message: written as text")
        return rewritten(message, content=message.content or "")
    if isinstance(message.content, list) and message.content and not write_message(message).get("content"):
        log.add(repairs.EMPTY, message, "none of the content can be sent to this provider: written as empty text")
        return rewritten(message, content="")
    if message.content or isinstance(message.content, str):
        return message
    wire = write_message(message) if message.role == "assistant" else {}
    if message.content is None and (message.tool_calls or any(wire.get(key) for key in _OTHER_CONTENT)):
        return message
    log.add(repairs.EMPTY, message, "no content: written as empty text")
    return rewritten(message, content="")


OPENAI_CHAT = Provider(
    name=NAME,
    messages_key="messages",
    keys=RequestKeys(_TABLE, under=("messages",), besides=_BESIDES),
    call_ids=re.compile(r"[\s\S]{1,64}"),
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    keeps=lambda message: message.format == NAME,
    writes_fields_of_other_roles=True,
    fit=_fit,
    ids_may_come_again=True,
    has_ids=lambda message: not is_function_call(message),
    is_result_without_id=is_function_result,
)
