"""The shapes of records that can be imported. Each is a module of its own, loaded when its name is first used."""

from __future__ import annotations

import importlib

from chatledger.errors import UnknownFormat
from chatledger.formats import format_names, get_codec, recognition_order
from chatledger.models.json import JsonValue
from chatledger.transfer.fields import find_value
from chatledger.transfer.shapes.message_list import MessageList
from chatledger.transfer.shapes.request_body import RequestBody
from chatledger.transfer.shapes.requests import spoken_by
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Shape

__all__ = ["AUTO", "BranchMessages", "Conversation", "Shape", "get_shape", "recognise_record", "shape_names"]

AUTO = "auto"

_OWN = {
    "oasst": "chatledger.transfer.shapes.message_tree:SHAPE",
    "swe-agent": "chatledger.transfer.shapes.swe_agent:SHAPE",
    "sharegpt": "chatledger.transfer.shapes.sharegpt:SHAPE",
}
# Formats whose conversation is more than one list in a request: the keys that hold it there.
_BODIES = {"anthropic": ("system", "messages"), "openai-responses": ("instructions", "input")}


def shape_names() -> list[str]:
    """The names that an import's `format` takes, beside "auto" and aliases."""
    return sorted({*_OWN, *format_names()})


def get_shape(name: str) -> Shape:
    """Raises UnknownFormat with the names there are."""
    if name in _OWN:
        module, attribute = _OWN[name].split(":")
        shape: Shape = getattr(importlib.import_module(module), attribute)
        return shape
    try:
        codec = get_codec(name)
    except UnknownFormat:
        raise UnknownFormat(name, f"unknown format {name!r}; there are {', '.join(shape_names())}") from None
    return RequestBody(codec, _BODIES[codec.name]) if codec.name in _BODIES else MessageList(codec)


def recognise_record(record: JsonValue, fieldname: str | None = None) -> Shape | None:
    """The first shape that is sure of the record, None if none is. With a field, of what stands there."""
    spoken = spoken_by(record)
    if spoken is not None:  # a recorded request is what its endpoint takes, however little it says
        return get_shape(spoken) if spoken in format_names() else None
    if fieldname is not None:
        record = find_value(record, fieldname)
    return next((shape for shape in map(get_shape, _in_order()) if shape.recognises(record)), None)


def _in_order() -> list[str]:
    """The more telling shape first: records that say what they are, bodies, then lists in the order of formats."""
    bodies = [name for name in _BODIES if name in format_names()]
    return [*_OWN, *bodies, *(name for name in recognition_order() if name not in bodies)]
