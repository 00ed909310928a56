"""Images and documents by their `source`: base64 data, a URL, or the id of an uploaded file.

A document whose source is a plain text or a list of blocks is no file; it is kept whole, as other blocks are.
"""

from __future__ import annotations

from chatledger.formats.wire.fields import object_at, optional_text_at, text_at
from chatledger.models import FilePart, ImagePart
from chatledger.models.json import JsonValue

_FIELDS = {
    "base64": {"media_type": "mime_type", "data": "data"},
    "url": {"url": "url"},
    "file": {"file_id": "id"},
}
"""Of each type of source: its keys, and the fields of a part that they are."""


def read_medium(block: dict[str, JsonValue], path: str) -> ImagePart | FilePart | None:
    """The part of an image or a document; None if its source is of another type."""
    source = object_at(block, "source", path)
    keys = _FIELDS.get(text_at(source, "type", f"{path}.source"))
    if keys is None:
        return None
    fields = {name: text_at(source, key, f"{path}.source") for key, name in keys.items()}
    if block["type"] == "image":
        return ImagePart.model_validate(fields)
    return FilePart.model_validate({**fields, "name": optional_text_at(block, "title", path)})


def write_medium(part: ImagePart | FilePart) -> dict[str, JsonValue] | None:
    """The block of a part that says one of the three; None of one that says none."""
    source = _source(part)
    if source is None:
        return None
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source}
    title = {} if part.name is None else {"title": part.name}
    return {"type": "document", "source": source, **title}


def _source(part: ImagePart | FilePart) -> dict[str, JsonValue] | None:
    for kind, keys in _FIELDS.items():
        fields = {key: getattr(part, name) for key, name in keys.items()}
        if None not in fields.values():
            return {"type": kind, **fields}
    return None
