"""The media of messages: which are shown, and the route that serves them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from chatledger.errors import NotFound
from chatledger.models import ChatMessage, Part
from chatledger.models.parts import MediaPart
from chatledger.server.page.html import HEADERS, html_router
from chatledger.server.paths import PathId
from chatledger.server.state import Mine

router = html_router()
_SAME = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
SHOWN = {
    **{f"image/{name}": "image" for name in ("png", "jpeg", "gif", "webp", "avif")},
    **{f"audio/{name}": "audio" for name in ("mpeg", "wav", "ogg", "webm", "mp4", "aac", "flac")},
    **{f"video/{name}": "video" for name in ("mp4", "webm", "ogg")},
}
"""The types that a page shows, and how. Not SVG: it can hold scripts. Everything else is a file to download."""
_PLAIN = str.maketrans("-_", "+/", " \t\r\n")
"""From base64 for addresses, and base64 in lines, to plain base64."""
_MAGIC = {
    re.compile(rb"\x89PNG\r\n"): "image/png",
    re.compile(rb"\xff\xd8\xff"): "image/jpeg",
    re.compile(rb"GIF8"): "image/gif",
    re.compile(rb"RIFF.{4}WEBP", re.DOTALL): "image/webp",
    re.compile(rb"RIFF.{4}WAVE", re.DOTALL): "audio/wav",
}
"""What the first 12 bytes of a type look like."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a medium holds itself."""

    type: str
    """Its type; `application/octet-stream` unless it says another."""
    data: str
    """Its bytes as the part has them: base64, or the text of a data URI."""
    is_base64: bool = True

    @property
    def shown_as(self) -> str | None:
        """`image`, `audio` or `video`; None for a file to download."""
        return SHOWN.get(self.type)

    def as_uri(self) -> str | None:
        """A data URI of the content; None if it cannot be read."""
        data = self.read()
        return None if data is None else f"data:{self.type};base64,{base64.b64encode(data).decode()}"

    def read(self) -> bytes | None:
        """The bytes; None if they are no base64."""
        if not self.is_base64:
            return unquote_to_bytes(self.data)
        try:
            return base64.b64decode(self.data.translate(_PLAIN), validate=True)
        except (binascii.Error, ValueError):
            return None


def content_of(part: MediaPart) -> Content | None:
    """The content of the part; None if it only has an address or an id."""
    if part.data is not None:
        return Content(_type(part.mime_type, part.data), part.data)
    if part.url is not None and part.url[:5].lower() == "data:":
        head, comma, data = part.url[5:].partition(",")
        if comma:
            kind, _, rest = head.partition(";")
            is_base64 = rest.lower().endswith("base64")
            return Content(_type(kind or part.mime_type, data if is_base64 else ""), data, is_base64)
    return None


def _type(given_type: str | None, data: str) -> str:
    if given_type:
        plain = given_type.partition(";")[0].strip().lower()
        return _SAME.get(plain, plain)
    try:
        start = base64.b64decode(data[:16])
    except (binascii.Error, ValueError):
        start = b""
    return next((kind for magic, kind in _MAGIC.items() if magic.match(start)), "application/octet-stream")


def parts_of(message: ChatMessage) -> Sequence[Part]:
    return message.content if isinstance(message.content, list) else ()


@router.get("/threads/{thread_id}/media/{message_id}/{index}")
async def medium(ledger: Mine, thread_id: PathId, message_id: PathId, index: int) -> Response:
    """Serve the medium at that index of the message's parts. What a browser might run is only downloaded."""
    parts = parts_of(await ledger.messages.get(thread_id, message_id))
    part = parts[index] if 0 <= index < len(parts) else None
    content = content_of(part) if isinstance(part, MediaPart) else None
    data = None if content is None else content.read()
    if content is None or data is None:
        raise NotFound(f"message {message_id!r} has no medium {index} whose content can be read")
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
    if content.shown_as is None:
        return Response(data, headers={**headers, "Content-Disposition": "attachment"}, media_type=_BYTES)
    return Response(data, headers=headers, media_type=content.type)


_BYTES = "application/octet-stream"
