"""Content items and parts, one for one.

An image, file, audio or video has only a `url`, because Qwen-Agent has nothing else. An audio dict of the usual form,
`{"data": …, "format": "wav"}`, is data or a URL with a mime type. Any other audio dict and the frames of a video stay
whole in the part's `extras`, as "audio" and "frames".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatledger.formats.qwen_agent.models import AUDIO, CONTENT_TYPES, EXCLUSIVE, FILE, IMAGE, TEXT, VIDEO, given_types
from chatledger.models import AudioPart, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, VideoPart
from chatledger.models.json import JsonValue

FRAMES = "frames"
_URL_STARTS = ("http://", "https://", "file://", "data:")
_AUDIO_MIME = "audio/"


def part_of(item: JsonValue) -> Part:
    """The part of a content item; an opaque part if the item is not valid."""
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
    """The content item of a part of any format; None if no item can hold any of its values."""
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


_TYPE_NAMES: dict[type, str] = {str: "text", dict: "an object", list: "a list"}
_CONTAINER: dict[str, type] = {AUDIO: dict, VIDEO: list}

Found = Iterator[tuple[str, str]]


def item_problems(item: Any) -> Found:
    """(path in the item, problem) for every value that Qwen-Agent's constructor would reject; the path may be empty."""
    if isinstance(item, dict):
        yield from _kind_problems(item)
    else:
        yield "", f"expected a content item as an object, not {type(item).__name__}"


def _kind_problems(item: dict[str, Any]) -> Found:
    for key in item:
        if key not in CONTENT_TYPES:
            yield f".{key}", f"unknown kind of content; known kinds: {', '.join(CONTENT_TYPES)}"
    for kind in CONTENT_TYPES:
        yield from type_problems(f".{kind}", item.get(kind), str, *((_CONTAINER[kind],) if kind in _CONTAINER else ()))
    if len(given_types(item)) != 1:
        yield "", EXCLUSIVE


def type_problems(path: str, value: Any, *types: type) -> Found:
    if value is not None and not isinstance(value, types):
        yield path, f"expected {' or '.join(_TYPE_NAMES[kind] for kind in types)}, not {type(value).__name__}"
