"""Parts of a message, the typed fields of its objects, and how the two revisions of kosong differ.

The part types that kosong itself defines become parts of the ledger; all others stay opaque. A value of the wrong type
raises a DecodeError with its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models import (
    AudioPart,
    ChatMessage,
    ImagePart,
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)
from chatledger.models.json import JsonValue

VIDEO = "video_url"
MEDIA: dict[str, type[ImagePart | AudioPart | VideoPart]] = {
    "image_url": ImagePart,
    "audio_url": AudioPart,
    VIDEO: VideoPart,
}


def read_part(
    value: JsonValue, path: str, revision: KosongRevision, *, lenient: bool = False, part_type: str | None = None
) -> Part:
    """The part. `part_type` is the type to read it as, if that is not the type that it states."""
    try:
        part = as_object(value, path)
        stated: str = required(part, "type", str, path)
        known = _read_known(part, part_type or stated, path, revision)
    except DecodeError:
        if not lenient:
            raise
        return OpaquePart(value=value)
    return known or OpaquePart(type=stated, value=value)


def _read_known(part: dict[str, JsonValue], part_type: str, path: str, revision: KosongRevision) -> Part | None:
    if part_type == "text":
        return TextPart(text=required(part, "text", str, path))
    if part_type == "think":
        return ThinkPart(text=required(part, "think", str, path), signature=optional(part, "encrypted", str, path))
    if part_type in MEDIA and (part_type != VIDEO or revision.has_videos):
        return _medium(part, part_type, path)
    return None


def _medium(part: dict[str, JsonValue], part_type: str, path: str) -> ImagePart | AudioPart | VideoPart:
    held = required(part, part_type, dict, path)
    inner_path = f"{path}.{part_type}"
    return MEDIA[part_type](url=required(held, "url", str, inner_path), id=optional(held, "id", str, inner_path))


def type_of(part: MediaPart) -> str:
    """The type of a medium in a message."""
    return next((name for name, kind in MEDIA.items() if isinstance(part, kind)), "file")


Source = Mapping[str, JsonValue]

_WORDS = {str: "text", bool: "true or false", dict: "an object", list: "a list"}


def optional(source: Source, key: str, kind: type, path: str, *, lenient: bool = False) -> Any:
    """The field, or None if it is absent. Strict refuses a value of another type; lenient ignores it."""
    value = source.get(key)
    if value is None or isinstance(value, kind):
        return value
    if lenient:
        return None
    raise DecodeError(f"{path}.{key}", f"expected {_WORDS[kind]}, not {type(value).__name__}")


def required(source: Source, key: str, kind: type, path: str) -> Any:
    """The field. Raises DecodeError if it is absent or of another type."""
    if source.get(key) is None:
        raise DecodeError(f"{path}.{key}", "missing")
    return optional(source, key, kind, path)


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise DecodeError(path, f"expected an object, not {type(value).__name__}")
    return value


def write_part(part: Part) -> JsonValue:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ThinkPart):
        return {"type": "think", "think": part.text, "encrypted": part.signature}
    if isinstance(part, MediaPart):
        return {"type": type_of(part), type_of(part): {"url": part.url, "id": part.id}}
    assert isinstance(part, OpaquePart)
    return part.value


# --- The two revisions ------------------------------------------------------------------------------------------------

FAMILY = "kosong/"
ROLES = frozenset({"system", "user", "assistant", "tool"})

# The keys of a residual. Most messages have no residual: an object that a constructor made needs only its fields.
AS_DICT = "dict"  # true: it came in as a dict and goes out as that dict, not as the dump of an object
SHORT = "short"  # true: a dict without its None values, as exclude_none writes them
PARTIAL = "partial"  # the source's flag, true or false
FIELDS = "fields"  # how the source differs from the encoded fields
DUMP = "dump"  # how an object's own dump differs from the one that we would write
CLASSES = "classes"  # the classes of parts whose `type` was changed, by index
GIVEN = "given"  # the fields that were given, where they are not those that a constructor call would give
LINE = "line"  # how the line of a context file differs from the one that we would write


@dataclass(frozen=True, slots=True)
class KosongRevision:
    """`message` is the class of its messages. `null_is_empty`: empty content dumps as null, one text stays a list."""

    name: str
    message: type[Any]
    null_is_empty: bool
    has_extras: bool
    has_videos: bool


def of_family(message: ChatMessage) -> bool:
    """Whether the message came from any revision of kosong, so that its residual has the keys above."""
    return message.format is not None and message.format.startswith(FAMILY)


def residual_of(message: ChatMessage) -> dict[str, JsonValue]:
    """The residual of a message of this family, empty for any other."""
    return message.residual if of_family(message) and isinstance(message.residual, dict) else {}
