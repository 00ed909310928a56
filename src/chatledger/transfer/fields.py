"""Find a field of a record by its dotted path, and read its value as an id or a time."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue
from chatledger.transfer.record_writer import json_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 100_000_000_000
"""Numbers from this one on are milliseconds: as seconds it would be the year 5138, as milliseconds it is 1973."""
_NUMBER = re.compile(r"-?\d{9,}(\.\d+)?")


def find_path(record: JsonValue, field: str) -> list[str] | None:
    """The keys that lead to a field; None if the record has no such field. A key that itself contains dots wins over a
    path through objects.
    """
    if isinstance(record, dict) and field in record:
        return [field]
    path = field.split(".")
    value = record
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return path


class FieldMissing(DecodeError):
    """A record has no conversation in the expected field."""


def require_path(record: JsonValue, *names: str) -> list[str]:
    """The keys that lead to the first of these fields that exists in the record. Raises FieldMissing."""
    for name in names:
        if (path := find_path(record, name)) is not None:
            return path
    raise FieldMissing(names[0], f"the record has no such field{other_lists(record) or _NO_LISTS}")


def other_lists(record: JsonValue) -> str:
    """The fields of a record that may hold its conversation, as the end of a sentence. Empty if there are none."""
    names = list(_lists(record))
    if not names:
        return ""
    shown = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
    return f"; it has {'lists' if len(names) > 1 else 'a list'} under {shown}: try --field {shlex.quote(names[0])}"


_NO_LISTS = "; name the field that holds the messages with --field"


def _lists(record: JsonValue, within: str = "") -> Iterator[str]:
    """The paths to lists of objects, in the record or in an object that it holds."""
    for key, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield within + key
        elif not within:
            yield from _lists(value, f"{key}.")


def find_value(record: JsonValue, field: str | None) -> Any:
    """The value of a field; None if the record has no such field."""
    path = None if field is None else find_path(record, field)
    value: Any = None if path is None else record
    for key in path or ():
        value = value[key]
    return value


def read_id(value: Any, path: str) -> str:
    """Read an id from a text or a whole number."""
    if value is None:
        raise DecodeError(path, "the record has no id in this field")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DecodeError(path, f"an id must be text or a whole number, not {_shown(value)}")
    return str(value)


def read_time(value: Any, path: str) -> datetime:
    """Read a time: ISO 8601 with a zone, or seconds or milliseconds since 1970."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if "." in value else int(value)
    try:
        if isinstance(value, str):
            return _with_zone(datetime.fromisoformat(value), path).astimezone(UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            in_milliseconds = abs(value) >= _MILLISECONDS_FROM
            return _EPOCH + (timedelta(milliseconds=value) if in_milliseconds else timedelta(seconds=value))
    except (ValueError, OverflowError) as error:
        raise DecodeError(path, _not_a_time(value)) from error
    raise DecodeError(path, _not_a_time(value))


def _not_a_time(value: Any) -> str:
    return f"not a time: {_shown(value)}; use ISO 8601 with a time zone, or seconds or milliseconds since 1970"


def _with_zone(moment: datetime, path: str) -> datetime:
    if moment.tzinfo is None:
        raise DecodeError(path, f"{moment.isoformat()} has no time zone; append Z for UTC, or an offset such as +02:00")
    return moment


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= 60 else text[:57] + "…"
