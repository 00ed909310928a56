"""Choose the shape of a file's records: the one that the caller names, or else the one detected in each record.

A record with only plain texts looks the same in most formats. It is read in the shape of the last record that was
recognised with more certainty, and so is a record that no shape recognises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatledger.errors import DecodeError, UnknownFormat
from chatledger.formats.wire.fields import kind_of
from chatledger.models.json import JsonValue
from chatledger.models.limits import MOST_VALUES
from chatledger.transfer.envelope import take_out
from chatledger.transfer.fields import find_value, other_lists
from chatledger.transfer.records import Record
from chatledger.transfer.shapes import AUTO, Shape, get_shape, recognise_record
from chatledger.transfer.shapes.requests import spoken_by

DEFAULT_FORMAT = "openai-chat"


class ShapeOfFile:
    """Raises UnknownFormat for an unknown name."""

    def __init__(self, format: str, fieldname: str | None) -> None:  # noqa: A002
        self._asked = None if format == AUTO else get_shape(format)
        self._field = fieldname
        self._known: Shape | None = None

    def of(self, record: Record) -> Shape:
        """Raises UnknownFormat if no shape recognises a recorded request or the first record of the file, and
        DecodeError for a record with a message of too many values.
        """
        refuse_crowded(record)
        if self._asked is not None:
            return self._asked
        shape = recognise_record(record.value, self._field)
        if record.item is not None:  # a recording may hold requests to several providers
            return self._require(shape, record)
        if self._known is None:
            self._known = self._require(shape, record)
        elif shape is not None and not self._is_plain(shape, record.value):
            self._known = shape
        elif shape is not None and not self._is_in(self._known, record.value):
            return shape
        return self._known

    def other_than_asked(self, record: Record) -> str | None:
        """The name of the format that the record has in place of the one that the caller names."""
        shape = None if self._asked is None else recognise_record(record.value, self._field)
        if self._asked is None or shape is None or self._is_plain(shape, record.value):
            return None
        asked_of = record.value if self._field is None else find_value(record.value, self._field)
        return None if self._asked.recognises(asked_of) else shape.name

    def _is_plain(self, shape: Shape, record: JsonValue) -> bool:
        """Whether the record has only texts, which every format reads."""
        if shape.name != DEFAULT_FORMAT:
            return False
        messages = take_out(record, shape.locate(record, self._field)).payload
        return all(message.keys() == {"role", "content"} and _is_text(message["content"]) for message in messages)

    def _is_in(self, shape: Shape, record: JsonValue) -> bool:
        """Whether the record has its conversation where the shape has it."""
        try:
            return shape.locate(record, self._field) is not None
        except DecodeError:
            return False

    def _require(self, shape: Shape | None, record: Record) -> Shape:
        if shape is None and self._field is not None:
            shape = get_shape(DEFAULT_FORMAT)  # a caller who names the field has messages there
        if shape is None:
            raise UnknownFormat(
                None, f"{_description(record.value)} matches no known format{other_lists(record.value)}"
            )
        return shape


def _is_text(content: JsonValue) -> bool:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return all(part.keys() == {"type", "text"} and isinstance(part["text"], str) for part in parts)


def _description(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return kind_of(value)
    if spoken_by(value) is not None:
        return f"a request to {value['endpoint']}"
    keys = list(map(repr, value))
    return "a record with " + (", ".join(keys[:8]) + (", …" if len(keys) > 8 else "") or "no keys")


_LEAST = 2
"""The fewest bytes of a value in a list: a digit and a comma."""


def refuse_crowded(record: Record) -> None:
    """Raises DecodeError with the place of an element of a list, such as a message, that has too many values.

    Formats look at each part and each call of a message, and each of them does. So such a record is refused before a
    format looks at it, as the server refuses such a body. A long conversation is no harm: an import reads it once, and
    in the order of its length.
    """
    if record.end - record.byte < MOST_VALUES * _LEAST:
        return
    for path, element in _elements(record.value):
        if _is_crowded(element):
            detail = f"{path} has more than {MOST_VALUES:,} values, which is the maximum for a message"
            raise DecodeError(path, detail, record=record.index, byte=record.byte)


def _elements(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """The elements of the outermost lists, with their paths."""
    pending: list[tuple[str, JsonValue]] = [("", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            pending.extend((f"{path}.{key}" if path else key, inner) for key, inner in item.items())
        elif isinstance(item, list):
            yield from ((f"{path}[{at}]", inner) for at, inner in enumerate(item) if isinstance(inner, (dict, list)))


def _is_crowded(value: JsonValue) -> bool:
    count, pending = 1, [value]
    while pending and count <= MOST_VALUES:
        item: Any = pending.pop()
        inner = item.values() if isinstance(item, dict) else item
        count += len(inner)
        pending += [element for element in inner if isinstance(element, (dict, list))]
    return count > MOST_VALUES
