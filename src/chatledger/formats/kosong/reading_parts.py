"""Parts: those of the types that kosong itself defines become parts of the ledger, all others stay as they are."""

from __future__ import annotations

from chatledger.errors import DecodeError
from chatledger.formats.kosong.fields import as_object, optional, required
from chatledger.formats.kosong.revision import Revision
from chatledger.models import AudioPart, ImagePart, MediaPart, OpaquePart, Part, TextPart, ThinkPart, VideoPart
from chatledger.models.json import JsonValue

VIDEO = "video_url"
MEDIA: dict[str, type[ImagePart | AudioPart | VideoPart]] = {
    "image_url": ImagePart,
    "audio_url": AudioPart,
    VIDEO: VideoPart,
}


def read_part(
    value: JsonValue, path: str, revision: Revision, *, lenient: bool = False, part_type: str | None = None
) -> Part:
    """The part; `part_type` is the type to read it as, if it is not the one that it states."""
    try:
        part = as_object(value, path)
        stated: str = required(part, "type", str, path)
        known = _read_known(part, part_type or stated, path, revision)
    except DecodeError:
        if not lenient:
            raise
        return OpaquePart(value=value)
    return known or OpaquePart(type=stated, value=value)


def _read_known(part: dict[str, JsonValue], part_type: str, path: str, revision: Revision) -> Part | None:
    if part_type == "text":
        return TextPart(text=required(part, "text", str, path))
    if part_type == "think":
        return ThinkPart(text=required(part, "think", str, path), signature=optional(part, "encrypted", str, path))
    if part_type in MEDIA and (part_type != VIDEO or revision.has_videos):
        return _medium(part, part_type, path)
    return None


def _medium(part: dict[str, JsonValue], part_type: str, path: str) -> ImagePart | AudioPart | VideoPart:
    held = required(part, part_type, dict, path)
    place = f"{path}.{part_type}"
    return MEDIA[part_type](url=required(held, "url", str, place), id=optional(held, "id", str, place))


def type_of(part: MediaPart) -> str:
    """The type under which a medium stands in a message."""
    return next((name for name, kind in MEDIA.items() if isinstance(part, kind)), "file")
