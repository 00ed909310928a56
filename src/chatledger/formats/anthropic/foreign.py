"""Fits messages of other formats to the API.

The result is a `ChatMessage`, which is then written like a message of the format itself. Custom messages, reasoning
without a signature or with another provider's, audio, video, and parts that only another format can read are left out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from chatledger.formats.anthropic.parts import NAME
from chatledger.formats.wire.arguments import fit_arguments
from chatledger.formats.wire.parts import ANTHROPIC, signer_of, split_data_uri
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build, copy_with

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_IMAGES = {f"image/{kind}": f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp")} | {"image/jpg": "image/jpeg"}
_PDF = "application/pdf"
_TEXT = "text/plain"


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that is not sent to a model.

    A message of the format itself is returned unchanged.
    """
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    role = _ROLES.get(message.role, "user")
    calls = [_fit_call(call) for call in message.tool_calls or ()] if role == "assistant" else []
    return build(
        ChatMessage,
        {
            "role": role,
            "content": _fit_content(message, role, bool(calls)),
            "tool_calls": calls or None,
            "tool_call_id": message.tool_call_id if role == "tool" else None,
            "name": message.name if role == "tool" else None,
            "is_error": message.is_error if role == "tool" else None,
            "seq": message.seq,
        },
    )


def _fit_content(message: ChatMessage, role: str, has_calls: bool) -> str | list[Part] | None:
    """The content. It may be None with calls and for a result."""
    thinking = list(_signed(message)) if role == "assistant" else []
    if isinstance(message.content, list):
        fitted = (_fit_part(part, role, message.format) for part in message.content)
        parts = thinking + [part for part in fitted if part is not None]
        return None if has_calls and not parts else parts
    if thinking:
        return [*thinking, *([TextPart(text=message.content)] if message.content else [])]
    if has_calls:
        return message.content or None
    return message.content if role == "tool" else message.content or ""


def _signed(message: ChatMessage) -> Iterator[Part]:
    """Reasoning that the API would accept: it requires its own signature."""
    for part in message.reasoning if isinstance(message.reasoning, list) else ():
        if isinstance(part, ThinkPart) and _may_be_signed_here(part, message.format):
            yield ThinkPart(text=part.text, signature=part.signature)


def _may_be_signed_here(part: ThinkPart, source_format: str | None) -> bool:
    """Whether the thought has a signature that is not known to be another provider's."""
    return part.signature is not None and signer_of(part, source_format) in (None, ANTHROPIC)


def _fit_call(call: ToolCall) -> ToolCall:
    return copy_with(call, {"arguments": fit_arguments(call.arguments), "extras": None})


def _fit_part(part: Part, role: str, source_format: str | None) -> Part | None:
    """The part in a form for the role; None if there is none. The API rejects an empty text in a list."""
    if isinstance(part, TextPart):
        return TextPart(text=part.text) if part.text else None
    if isinstance(part, ThinkPart):
        signed = role == "assistant" and _may_be_signed_here(part, source_format)
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
    """A PDF with data or a URL, or a text. A file with a URL has no known type, so it is taken for a PDF."""
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
    """(mime type, base64 data) of the part, or of its data URI."""
    if part.data is not None:
        return part.mime_type or "", part.data
    if part.url is None or not part.url.startswith("data:"):
        return "", None
    mime_type, data = split_data_uri(part.url) or ("", "")
    return mime_type or part.mime_type or "", data
