"""Which shape the records of a file have: the one that was asked for, or what its first record surely is."""

from __future__ import annotations

from chatledger.errors import UnknownFormat
from chatledger.models.json import JsonValue
from chatledger.transfer.records import Record
from chatledger.transfer.shapes import AUTO, Shape, get_shape, recognise_record
from chatledger.transfer.shapes.requests import spoken_by

DEFAULT_FORMAT = "openai-chat"


class ShapeOfFile:
    """Raises UnknownFormat for a name that there is not."""

    def __init__(self, format: str, fieldname: str | None) -> None:  # noqa: A002
        self._asked = None if format == AUTO else get_shape(format)
        self._field = fieldname
        self._first: Shape | None = None

    def of(self, record: Record) -> Shape:
        """Raises UnknownFormat for a record that no shape is sure of."""
        if self._asked is not None:
            return self._asked
        if record.item is not None:  # one recording may speak to several providers
            return self._recognised(record)
        if self._first is None:
            self._first = self._recognised(record)
        return self._first

    def _recognised(self, record: Record) -> Shape:
        found = recognise_record(record.value, self._field)
        if found is None and self._field is not None:
            found = get_shape(DEFAULT_FORMAT)  # whoever says where the messages are has messages there
        if found is None:
            raise UnknownFormat(None, f"{_description(record.value)} is of no known format")
        return found


def _description(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return "a list" if isinstance(value, list) else f"{type(value).__name__}"
    if spoken_by(value) is not None:
        return f"a request to {value['endpoint']}"
    keys = list(map(repr, value))
    return "a record with " + (", ".join(keys[:8]) + (", …" if len(keys) > 8 else "") or "no keys")
