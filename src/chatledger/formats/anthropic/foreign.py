"""Messages of another origin as messages that the API accepts.

The result is a `ChatMessage`, which is then written like one of the format itself. Left out are custom messages,
reasoning without a signature or with that of another provider, audio and video, and parts that only another format
understands.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from chatledger.formats.anthropic.names import NAME
from chatledger.formats.wire.data_uris import split_data_uri
from chatledger.formats.wire.signatures import ANTHROPIC, signer_of
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import JsonValue, dumps, json_problem, loads

RAW = "_raw"
"""The only key of an input that was no object."""
_INPUT_DEPTH = 480  # of the 500 levels that a payload may nest: the input stands a few levels down
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_IMAGES = {f"image/{kind}": f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp")} | {"image/jpg": "image/jpeg"}
_PDF = "application/pdf"
_TEXT = "text/plain"


def fit(message: ChatMessage) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that no model sees.

    A message of the format itself is returned unchanged.
    """
    if message.format == NAME:
        return message
    if message.role == "custom":
        return None
    role = _ROLES.get(message.role, "user")
    calls = [_fit_call(call) for call in message.tool_calls or ()] if role == "assistant" else []
    return ChatMessage(
        role=role,
        content=_fit_content(message, role, bool(calls)),
        tool_calls=calls or None,
        tool_call_id=message.tool_call_id if role == "tool" else None,
        name=message.name if role == "tool" else None,
        is_error=message.is_error if role == "tool" else None,
        seq=message.seq,
    )


def _fit_content(message: ChatMessage, role: str, has_calls: bool) -> str | list[Part] | None:
    """The content. It may be None beside calls and for a result."""
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
    """Reasoning that the API would accept: it requires the signature that it gave."""
    for part in message.reasoning if isinstance(message.reasoning, list) else ():
        if isinstance(part, ThinkPart) and _may_be_signed_here(part, message.format):
            yield ThinkPart(text=part.text, signature=part.signature)


def _may_be_signed_here(part: ThinkPart, source_format: str | None) -> bool:
    """Whether the thought has a signature, and not one that another provider is known to have given."""
    return part.signature is not None and signer_of(part, source_format) in (None, ANTHROPIC)


def _fit_call(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"arguments": fit_arguments(call.arguments), "extras": None})


def fit_arguments(arguments: str | dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """The arguments as an object, the only type that the API accepts. Any other value is text under one key."""
    value = as_input(arguments)
    if value is not None:
        return value
    return {RAW: arguments if isinstance(arguments, str) else dumps(arguments)}


def as_input(arguments: str | dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """The object that the arguments are or spell; None if they spell no object. A blank text means no arguments."""
    value = _parsed(arguments) if isinstance(arguments, str) else arguments or {}
    return value if isinstance(value, dict) and json_problem(value, max_depth=_INPUT_DEPTH) is None else None


def _parsed(text: str) -> JsonValue:
    try:
        return loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None


def _fit_part(part: Part, role: str, source_format: str | None) -> Part | None:
    """The part as a message of the role can have it; None if it cannot. The API refuses an empty text in a list."""
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
    """A PDF by its data or URL, or a text. The type of a file at a URL is unknown, so it is assumed to be a PDF."""
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
