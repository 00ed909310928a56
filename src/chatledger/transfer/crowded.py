"""Refuses a record with a message of very many values before a format looks at it, as the server refuses such a body.

Formats look at each part and each call of a message, and each of them does. A long conversation is no harm: an import
reads it once, and in the order of its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue
from chatledger.models.limits import MOST_VALUES
from chatledger.transfer.records import Record

_LEAST = 2
"""The fewest bytes of a value in a list: a digit and a comma."""


def refuse_crowded(record: Record) -> None:
    """Raises DecodeError with the place of an element of a list, such as a message, that has too many values."""
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
        pending += [one for one in inner if isinstance(one, (dict, list))]
    return count > MOST_VALUES
