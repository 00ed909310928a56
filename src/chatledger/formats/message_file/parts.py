"""Contents with a mime type as content parts, and back: texts as text, everything else as a medium in base64."""

from __future__ import annotations

import re
from typing import Any

from chatledger.formats.message_file.models import TEXT
from chatledger.models import AudioPart, FilePart, ImagePart, MediaPart, Part, TextPart, VideoPart

BINARY = "application/octet-stream"
URI = "text/uri-list"

_TEXTUAL = re.compile(r"text/.*|application/(json|xml|yaml|javascript|.*\+(json|xml))|[^/]*", re.IGNORECASE | re.DOTALL)
_MEDIA: dict[str, type[MediaPart]] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def to_part(content: str, mime_type: str) -> Part:
    if _TEXTUAL.fullmatch(mime_type):
        return TextPart(text=content)
    kind: Any = _MEDIA.get(mime_type.partition("/")[0].lower(), FilePart)
    part: Part = kind(data=content, mime_type=mime_type)
    return part


def from_part(part: Part) -> tuple[str, str] | None:
    """The content of a part and its mime type; None for a part that is neither a text nor a medium."""
    if isinstance(part, TextPart):
        return part.text, TEXT
    if not isinstance(part, MediaPart):
        return None
    if part.data is not None:
        return part.data, part.mime_type or BINARY
    return (part.url, URI) if part.url is not None else None
