"""The shape of a file's records: the one the caller names, or the one that its first record has."""

from __future__ import annotations

from chatledger.errors import UnknownFormat
from chatledger.models.json import JsonValue
from chatledger.transfer.fields import other_lists
from chatledger.transfer.records import Record
from chatledger.transfer.shapes import AUTO, Shape, get_shape, recognise_record
from chatledger.transfer.shapes.requests import spoken_by

DEFAULT_FORMAT = "openai-chat"


class ShapeOfFile:
    """Raises UnknownFormat for an unknown name."""

    def __init__(self, format: str, fieldname: str | None) -> None:  # noqa: A002
        self._asked = None if format == AUTO else get_shape(format)
        self._field = fieldname
        self._first: Shape | None = None

    def of(self, record: Record) -> Shape:
        """Raises UnknownFormat if no shape recognises the record."""
        if self._asked is not None:
            return self._asked
        if record.item is not None:  # a recording may hold requests to several providers
            return self._recognised(record)
        if self._first is None:
            self._first = self._recognised(record)
        return self._first

    def _recognised(self, record: Record) -> Shape:
        found = recognise_record(record.value, self._field)
        if found is None and self._field is not None:
            found = get_shape(DEFAULT_FORMAT)  # a caller who names the field has messages there
        if found is None:
            raise UnknownFormat(None, f"{_description(record.value)} is of no known format{other_lists(record.value)}")
        return found


def _description(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return "a list" if isinstance(value, list) else f"{type(value).__name__}"
    if spoken_by(value) is not None:
        return f"a request to {value['endpoint']}"
    keys = list(map(repr, value))
    return "a record with " + (", ".join(keys[:8]) + (", …" if len(keys) > 8 else "") or "no keys")
