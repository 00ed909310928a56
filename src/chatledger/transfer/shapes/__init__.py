"""The shapes of records that can be imported. The module of a shape is loaded when its name is first used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from chatledger.errors import UnknownFormat
from chatledger.formats import format_names, get_codec, recognition_order, unusable_formats
from chatledger.formats.registry import unknown_format
from chatledger.models.json import JsonValue
from chatledger.transfer.fields import find_value
from chatledger.transfer.shapes.message_list import DEFAULT_FIELD, MessageList
from chatledger.transfer.shapes.request_body import RequestBody
from chatledger.transfer.shapes.requests import spoken_by
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Shape

__all__ = [
    "AUTO",
    "BranchMessages",
    "Conversation",
    "Shape",
    "conversation_keys",
    "get_shape",
    "recognise_record",
    "require_writable",
    "shape_names",
]

AUTO = "auto"

_OWN = {
    "oasst": "chatledger.transfer.shapes.message_tree:SHAPE",
    "swe-agent": "chatledger.transfer.shapes.swe_agent:SHAPE",
    "sharegpt": "chatledger.transfer.shapes.sharegpt:SHAPE",
}
# Formats whose requests hold a conversation under several keys.
_BODIES = {"anthropic": ("system", "messages"), "openai-responses": ("instructions", "input")}


def shape_names() -> list[str]:
    """The names that an import accepts as `format`, besides "auto" and aliases."""
    return sorted({*_OWN, *format_names()})


def get_shape(name: str) -> Shape:
    """Raises UnknownFormat, which lists the known names."""
    if name in _OWN:
        module, attribute = _OWN[name].split(":")
        shape: Shape = getattr(importlib.import_module(module), attribute)
        return shape
    try:
        codec = get_codec(name)
    except UnknownFormat:
        if name in unusable_formats():
            raise
        raise unknown_format(name, shape_names()) from None
    return RequestBody(codec, _BODIES[codec.name]) if codec.name in _BODIES else MessageList(codec)


def require_writable(name: str) -> None:
    """Raises UnknownFormat for a format whose records are only written if they were read as such."""
    if name in _OWN:
        detail = (
            f"cannot write {name}, except from a file of that format; convert to one of {', '.join(format_names())}"
        )
        raise UnknownFormat(name, detail)


def conversation_keys(format: str) -> Sequence[str]:  # noqa: A002
    """The keys under which the format's readers look for a conversation. The last one holds the messages."""
    return _BODIES.get(get_codec(format).name, (DEFAULT_FIELD,))


def recognise_record(record: JsonValue, fieldname: str | None = None) -> Shape | None:
    """The first shape that recognises the record, or with `fieldname` the value of that field. None if none does."""
    spoken = spoken_by(record)
    if spoken is not None:  # the endpoint decides, since a short request may look like several formats
        return get_shape(spoken) if spoken in format_names() else None
    if fieldname is not None:
        record = find_value(record, fieldname)
    return next((shape for shape in map(get_shape, _in_order()) if shape.recognises(record)), None)


def _in_order() -> list[str]:
    """The most specific shapes first: records with their own keys, then bodies, then lists in the order of formats."""
    bodies = [name for name in _BODIES if name in format_names()]
    return [*_OWN, *bodies, *(name for name in recognition_order() if name not in bodies)]
