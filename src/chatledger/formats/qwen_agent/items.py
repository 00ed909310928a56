"""Content items and parts, one for one.

An image, file, audio or video is where it is (`url`); Qwen-Agent itself does not say more. An audio dict of the usual
form, `{"data": …, "format": "wav"}`, is data or a URL with a mime type. Any other audio dict and the frames of a video
stay whole in the part's `extras`, as "audio" and "frames".
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.qwen_agent.constants import AUDIO, FILE, IMAGE, TEXT, VIDEO
from chatledger.formats.qwen_agent.content import given_types
from chatledger.formats.qwen_agent.validity import item_problems
from chatledger.models import AudioPart, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, VideoPart
from chatledger.models.json import JsonValue

FRAMES = "frames"
_URL_STARTS = ("http://", "https://", "file://", "data:")
_AUDIO_MIME = "audio/"


def part_of(item: JsonValue) -> Part:
    """The part of a content item; an opaque one if it is not a valid item."""
    if next(item_problems(item), None) is not None:
        declared = item.get("type") if isinstance(item, dict) else None
        return OpaquePart(type=declared if isinstance(declared, str) else None, value=item)
    kind = given_types(item)[0]
    value = item[kind]
    if kind == TEXT:
        return TextPart(text=value)
    if kind == AUDIO and isinstance(value, dict):
        return _audio_of(value)
    if kind == VIDEO and isinstance(value, list):
        return VideoPart(extras={FRAMES: value})
    return _MEDIA[kind](url=value)


_MEDIA: dict[str, type[ImagePart | FilePart | AudioPart | VideoPart]] = {
    IMAGE: ImagePart,
    FILE: FilePart,
    AUDIO: AudioPart,
    VIDEO: VideoPart,
}


def item_of(part: Part) -> JsonValue | None:
    """The content item of a part, whatever its origin; None if there is nothing that an item could hold."""
    if isinstance(part, OpaquePart):
        return part.value
    if isinstance(part, (TextPart, ThinkPart)):
        return {TEXT: part.text}
    value = _audio_value(part) if isinstance(part, AudioPart) else _value(part)
    return {part.kind: value} if value else None


def _audio_of(value: dict[str, Any]) -> AudioPart:
    data, form = value.get("data"), value.get("format")
    if list(value) == ["data", "format"] and data and isinstance(data, str) and isinstance(form, str):
        mime_type = _AUDIO_MIME + form
        return AudioPart(url=data, mime_type=mime_type) if _is_url(data) else AudioPart(data=data, mime_type=mime_type)
    return AudioPart(extras={AUDIO: value})


def _audio_value(part: AudioPart) -> JsonValue | None:
    if part.extras and isinstance(part.extras.get(AUDIO), dict):
        return part.extras[AUDIO]
    if part.mime_type and part.mime_type.startswith(_AUDIO_MIME) and (part.url or part.data):
        return {"data": part.url or part.data, "format": part.mime_type.removeprefix(_AUDIO_MIME)}
    return part.url or ({"data": part.data} if part.data else None)


def _value(part: ImagePart | FilePart | VideoPart) -> JsonValue | None:
    if isinstance(part, VideoPart) and part.extras and isinstance(part.extras.get(FRAMES), list):
        return part.extras[FRAMES]
    if part.url or not part.data:
        return part.url
    return f"data:{part.mime_type or ''};base64,{part.data}"


def _is_url(text: str) -> bool:
    return text.startswith(_URL_STARTS)


def is_as_read(part: Part) -> bool:
    """Whether reading makes such a part: one that a program changed or put there may hold what is not written."""
    if isinstance(part, OpaquePart):
        return True
    if isinstance(part, (TextPart, ThinkPart)):
        return isinstance(part, TextPart) and part.extras is None
    if isinstance(part, AudioPart):
        return part.name is None and part.id is None
    usual = (part.data, part.mime_type, part.name, part.id) == (None, None, None, None)
    return usual and (part.extras is None or isinstance(part, VideoPart))
