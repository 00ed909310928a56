"""Content blocks, both ways. A block of a type that is not known here is kept whole, in its place.

So are redacted thinking, server tools with their results, MCP, searches, container uploads, compaction and whatever
comes next: they mean something to this API alone, and it takes back what it gave only unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.media import read_medium, write_medium
from chatledger.formats.wire.fields import as_object, optional_text_at, text_at
from chatledger.formats.wire.residual import keep, nested, put_back
from chatledger.models import FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue

SOURCE = "source"
"""Residual of a medium: that of its source, so that the outer one never repeats the data."""


def read_block(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part and its residual. Lenient keeps a malformed block whole, as one of an unknown type."""
    block = as_object(value, path)
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        if reader is None and not lenient:
            text_at(block, "type", path)
        part = None if reader is None else reader(block, path)
    except DecodeError:
        if not lenient:
            raise
        part = None
    if part is None:
        return opaque(block), None
    return part, _residual(block, _encoded(part) or {})


def write_block(part: Part, residual: JsonValue = None) -> dict[str, JsonValue] | None:
    """The block that the part was read from; None if no block says it."""
    if isinstance(part, OpaquePart):
        return part.value if isinstance(part.value, dict) else None
    encoded = _encoded(part)
    if encoded is None:
        return None
    if isinstance(encoded.get(SOURCE), dict):
        encoded = {**encoded, SOURCE: put_back(encoded[SOURCE], nested(residual, SOURCE))}
    return put_back(encoded, residual)


def opaque(block: dict[str, JsonValue]) -> OpaquePart:
    kind = block.get("type")
    return OpaquePart(type=kind if isinstance(kind, str) else None, value=block)


def _residual(block: dict[str, JsonValue], encoded: dict[str, JsonValue]) -> JsonValue:
    source = keep(block[SOURCE], encoded[SOURCE]) if SOURCE in encoded else None
    inner: dict[str, JsonValue] = {} if source is None else {SOURCE: source}
    if SOURCE in encoded:
        encoded = {**encoded, SOURCE: block[SOURCE]}
    return {**inner, **(keep(block, encoded) or {})} or None


def _encoded(part: Part) -> dict[str, JsonValue] | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ThinkPart):
        signature = {} if part.signature is None else {"signature": part.signature}
        return {"type": "thinking", "thinking": part.text, **signature}
    return write_medium(part) if isinstance(part, (ImagePart, FilePart)) else None


def _read_text(block: dict[str, JsonValue], path: str) -> Part:
    return TextPart(text=text_at(block, "text", path))


def _read_thinking(block: dict[str, JsonValue], path: str) -> Part:
    return ThinkPart(text=text_at(block, "thinking", path), signature=optional_text_at(block, "signature", path))


_READERS: dict[str, Callable[[dict[str, JsonValue], str], Part | None]] = {
    "text": _read_text,
    "thinking": _read_thinking,
    "image": read_medium,
    "document": read_medium,
}
