"""Parts of other origin as parts that the API can take in a role."""

from __future__ import annotations

import base64
import binascii

from chatledger.formats.wire.data_uris import split_data_uri
from chatledger.models import FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart

_IMAGES = {f"image/{kind}": f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp")} | {"image/jpg": "image/jpeg"}
_PDF = "application/pdf"
_TEXT = "text/plain"


def fit_part(part: Part, role: str) -> Part | None:
    """The part as it can be said; None if it cannot. The API refuses an empty text in a list."""
    if isinstance(part, TextPart):
        return TextPart(text=part.text) if part.text else None
    if isinstance(part, ThinkPart):
        signed = role == "assistant" and part.signature is not None
        return ThinkPart(text=part.text, signature=part.signature) if signed else None
    if role not in ("user", "tool") or not isinstance(part, (ImagePart, FilePart)):
        return None
    return _fit_image(part) if isinstance(part, ImagePart) else _fit_file(part)


def _fit_image(part: ImagePart) -> Part | None:
    mime_type, data = _data(part)
    if data is not None:
        return ImagePart(data=data, mime_type=_IMAGES[mime_type]) if mime_type in _IMAGES else None
    return None if part.url is None else ImagePart(url=part.url)


def _fit_file(part: FilePart) -> Part | None:
    """A PDF by its data or URL, or a text. Which file another URL leads to nobody says, so it is taken for a PDF."""
    mime_type, data = _data(part)
    if data is None:
        return None if part.url is None else FilePart(url=part.url, name=part.name)
    if mime_type == _PDF:
        return FilePart(data=data, mime_type=_PDF, name=part.name)
    return _text_document(data, part.name) if mime_type == _TEXT else None


def _text_document(data: str, name: str | None) -> Part | None:
    try:
        text = base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    title = {} if name is None else {"title": name}
    source = {"type": "text", "media_type": _TEXT, "data": text}
    return OpaquePart(type="document", value={"type": "document", "source": source, **title})


def _data(part: ImagePart | FilePart) -> tuple[str, str | None]:
    """(mime type, base64 data): of a data URI what it says itself."""
    if part.data is not None:
        return part.mime_type or "", part.data
    if part.url is None or not part.url.startswith("data:"):
        return "", None
    mime_type, data = split_data_uri(part.url) or ("", "")
    return mime_type or part.mime_type or "", data
