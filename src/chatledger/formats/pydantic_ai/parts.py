"""Items of a prompt or of a result, and parts of a response, both ways. Unknown ones are kept whole, in their place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.pydantic_ai.names import (
    FILE,
    KIND,
    PART_KIND,
    PARTS,
    STANDARD,
    TEXT,
    THINKING,
    Source,
    original,
    with_given,
)
from chatledger.formats.wire.fields import as_object, object_at, optional_text_at, text_at
from chatledger.formats.wire.parts import FROM_URL_SAFE, URL_SAFE, Medium, by_index, class_of, opaque, signed_by
from chatledger.formats.wire.residual import keep, nested, restore
from chatledger.models import (
    AudioPart,
    FilePart,
    ImagePart,
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)
from chatledger.models.json import JsonValue

_URLS: dict[str, type[Medium]] = {
    "image-url": ImagePart,
    "audio-url": AudioPart,
    "video-url": VideoPart,
    "document-url": FilePart,
}
_BINARY = "binary"
_CONTENT = "text-content"
_TEXTS = (_CONTENT, "structured-content")
_MEDIA_KEYS = frozenset({"url", "force_download", "vendor_metadata", "kind", "media_type", "identifier"})


# --- Items of a prompt or of a result ---------------------------------------------------------------------------------


def read_items(values: Sequence[JsonValue], path: str, *, lenient: bool) -> tuple[list[Part], Source]:
    """The parts, and the residuals of those that need one, by index. Raises DecodeError."""
    return by_index(read_item(value, f"{path}[{index}]", lenient=lenient) for index, value in enumerate(values))


def write_items(parts: Sequence[Part], residual: JsonValue) -> list[JsonValue]:
    """The items of parts, without the parts that no item can hold."""
    written = (write_item(part, nested(residual, PARTS, str(index))) for index, part in enumerate(parts))
    return [item for item in written if item is not None]


def read_item(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """The part of an item and its residual. Lenient rules keep a malformed item whole."""
    if isinstance(value, str):
        return TextPart(text=value), None
    try:
        item = as_object(value, path)
        known = _read_known(item, text_at(item, KIND, path), path)
    except DecodeError:
        if not lenient:
            raise
        known = None
    return known or (opaque(value, KIND), None)


def write_item(part: Part, residual: JsonValue = None) -> JsonValue:
    """The item of a part; None if a prompt cannot hold it."""
    if isinstance(part, OpaquePart):
        return part.value
    if isinstance(part, TextPart):
        kind = nested(residual, KIND)
        return restore(_text(part, kind), residual) if kind in _TEXTS else part.text
    if not isinstance(part, MediaPart):
        return None
    encoded = _binary(part, residual) if part.data is not None else _address(part, residual)
    return None if encoded is None else restore(encoded, residual)


def _read_known(item: Source, kind: str, path: str) -> tuple[Part, JsonValue] | None:
    if kind in _TEXTS:
        text = TextPart(text=text_at(item, "content", path))
        # The framework writes no empty text here: it would render the value again.
        return (text, {KIND: kind, **(keep(item, _text(text, kind)) or {})}) if text.text else None
    if kind in _URLS:
        fields = {"url": text_at(item, "url", path), "mime_type": optional_text_at(item, "media_type", path)}
        medium = _URLS[kind].model_validate(fields)
        residual = with_given(item, "identifier")
        return medium, {**residual, **(keep(item, _address(medium, residual) or {}) or {})}
    return read_binary(item, path) if kind == _BINARY else None


def read_binary(item: Source, path: str) -> tuple[Medium, Source]:
    """A medium with data. Raises DecodeError."""
    data, mime_type = text_at(item, "data", path), text_at(item, "media_type", path)
    medium = class_of(mime_type).model_validate({"data": data.translate(FROM_URL_SAFE), "mime_type": mime_type})
    residual = with_given(item, "identifier")
    if "+" in data or "/" in data:
        residual[STANDARD] = True
    return medium, {**residual, **(keep(item, _binary(medium, residual)) or {})}


def _text(part: TextPart, kind: JsonValue) -> Source:
    return {"content": part.text, "metadata": None, KIND: kind}


def _address(part: MediaPart, residual: JsonValue) -> Source | None:
    kind = next(kind for kind, of in _URLS.items() if isinstance(part, of))
    if part.url is None:
        return None
    return {
        "url": part.url,
        "force_download": False,
        "vendor_metadata": None,
        KIND: kind,
        "media_type": part.mime_type,
        **original(residual, "identifier"),
    }


def _binary(part: MediaPart, residual: JsonValue) -> Source:
    data = part.data or ""
    return {
        "data": data if nested(residual, STANDARD) is True else data.translate(URL_SAFE),
        "media_type": "application/octet-stream" if part.mime_type is None else part.mime_type,
        "vendor_metadata": None,
        KIND: _BINARY,
        **original(residual, "identifier"),
    }


# --- Files in the results of tools ------------------------------------------------------------------------------------


def has_files(items: Sequence[JsonValue], digests: JsonValue) -> bool:
    """Whether a result's content is texts and at least one file. Anything else is data of the tool."""
    are_files = [is_file(item, digests) for item in items]
    return any(are_files) and all(
        is_known or isinstance(item, str) for is_known, item in zip(are_files, items, strict=True)
    )


def is_file(item: JsonValue, digests: JsonValue) -> bool:
    """Whether the framework takes an object in a result for a file, and not for data that looks like a file.

    It does so for a URL whose digest the result lists. Results of older releases have no list: in them a web URL is a
    file.
    """
    if not isinstance(item, dict):
        return False
    if item.get(KIND) == _BINARY:
        return isinstance(item.get("data"), str) and isinstance(item.get("media_type"), str)
    url = item.get("url")
    if not _is_address(item) or not isinstance(url, str) or not item.keys() <= _MEDIA_KEYS:
        return False
    if not isinstance(item.get("media_type"), (str, type(None))):
        return False
    return digest(item) in digests if isinstance(digests, list) else url.startswith(("https://", "http://"))


def _is_address(item: JsonValue) -> bool:
    kind = item.get(KIND) if isinstance(item, dict) else None
    return isinstance(kind, str) and kind in _URLS


def digests_of(content: JsonValue) -> list[JsonValue]:
    """The digests of the files in a result's content."""
    items = content if isinstance(content, list) else [content]
    return sorted({digest(item) for item in items if _is_address(item)})


def digest(item: Source) -> str:
    """The framework's digest of a file."""
    return hashlib.sha256(json.dumps(item, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# --- Parts of a response ----------------------------------------------------------------------------------------------


def read_part(value: JsonValue, path: str, *, lenient: bool) -> tuple[Part, JsonValue]:
    """A part of a response other than a call, and its residual. Lenient rules keep a malformed part whole."""
    try:
        part = as_object(value, path)
        known = _read_known_part(part, text_at(part, PART_KIND, path), path)
    except DecodeError:
        if not lenient:
            raise
        known = None
    return known or (opaque(value, PART_KIND), None)


def write_part(part: Part, residual: JsonValue = None) -> JsonValue:
    """The part of a response; None if it cannot hold this one."""
    if isinstance(part, OpaquePart):
        return part.value
    if isinstance(part, TextPart):
        return restore(_text_part(part), residual)
    if isinstance(part, ThinkPart):
        return restore(_thinking(part), residual)
    if not isinstance(part, MediaPart) or part.data is None:
        return None
    inner = nested(residual, FILE)
    return restore(_file(restore(_binary(part, inner), inner)), residual)


def _read_known_part(part: Source, kind: str, path: str) -> tuple[Part, JsonValue] | None:
    if kind == TEXT:
        text = TextPart(text=text_at(part, "content", path))
        return text, keep(part, _text_part(text))
    if kind == THINKING:
        thought = ThinkPart(
            text=text_at(part, "content", path),
            signature=optional_text_at(part, "signature", path),
            extras=_extras(part, path),
        )
        return thought, keep(part, _thinking(thought))
    if kind != FILE:
        return None
    source = object_at(part, "content", path)
    medium, inner = read_binary(source, f"{path}.content")
    outer = keep(part, _file(source)) or {}
    return medium, {**({FILE: inner} if inner else {}), **outer} or None


def _extras(part: Source, path: str) -> dict[str, Any] | None:
    """The provider that signed a thought, and its id of the thought."""
    provider, id_ = (optional_text_at(part, key, path) for key in ("provider_name", "id"))
    return signed_by(provider, id_)


def _text_part(part: TextPart) -> Source:
    return {
        "content": part.text,
        "id": None,
        "provider_name": None,
        "provider_details": None,
        "citations": None,
        PART_KIND: TEXT,
    }


def _thinking(part: ThinkPart) -> Source:
    provider, id_ = (_text_or_none(part.extras, key) for key in ("provider", "id"))
    return {
        "content": part.text,
        "id": id_,
        "signature": part.signature,
        "provider_name": provider,
        "provider_details": None,
        PART_KIND: THINKING,
    }


def _text_or_none(extras: JsonValue, key: str) -> str | None:
    value = nested(extras, key)
    return value if isinstance(value, str) else None


def _file(content: Source) -> Source:
    return {"content": content, "id": None, "provider_name": None, "provider_details": None, PART_KIND: FILE}
