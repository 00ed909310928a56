"""A record taken apart, and put together again.

The messages go into the ledger; every other key becomes the thread's metadata as it is. Under one key of its own an
envelope says how they were joined: the path to the messages, their place among the keys, the kind of file, the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue
from chatledger.transfer.fields import find_path
from chatledger.transfer.records import Container

KEY = "chatledger.import"
DEFAULT_FIELD = "messages"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A record without its messages: `path` led to them, the last key of it at `position` in its object.

    An empty path: the record was the message list itself.
    """

    messages: JsonValue
    rest: dict[str, JsonValue]
    path: list[str]
    position: int = 0


@dataclass(frozen=True, slots=True)
class Envelope:
    """`imported_at` and `index` give the order in which records came; `own` is what a record itself had under KEY."""

    format: str
    container: Container
    path: list[str]
    position: int
    file: str
    imported_at: str
    index: int
    own: JsonValue = None


def unpack(record: JsonValue, field: str | None) -> Parcel:
    """Raises DecodeError if the record holds no messages where they are looked for."""
    if isinstance(record, list) and field is None:
        return Parcel(record, {}, [])
    if not isinstance(record, dict):
        raise DecodeError("", f"not an object with a message list, but {type(record).__name__}")
    path = find_path(record, field or DEFAULT_FIELD)
    if path is None:
        raise DecodeError(field or DEFAULT_FIELD, _not_there(record, field))
    return _take_out(record, path)


def _not_there(record: dict[str, Any], field: str | None) -> str:
    lists = [key for key, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    hint = f"; there is a list under {', '.join(map(repr, lists[:3]))}" if lists else ""
    return f"the record has no such field{hint}" if field else f"say which field holds the messages (--field){hint}"


def _take_out(record: dict[str, JsonValue], path: list[str]) -> Parcel:
    rest = dict(record)
    inner = rest
    for key in path[:-1]:
        inner[key] = dict(inner[key])  # only what leads to the messages is copied
        inner = inner[key]
    position = list(inner).index(path[-1])
    return Parcel(inner.pop(path[-1]), rest, path, position)


def pack(messages: JsonValue, rest: Mapping[str, JsonValue], envelope: Envelope) -> JsonValue:
    """The record, with these messages in it."""
    if not envelope.path:
        return messages
    return _put_in(rest, envelope.path, envelope.position, messages)


def _put_in(rest: Mapping[str, JsonValue], path: list[str], position: int, messages: JsonValue) -> JsonValue:
    if len(path) > 1:
        inner = rest.get(path[0])
        joined = _put_in(inner if isinstance(inner, dict) else {}, path[1:], position, messages)
        return {**rest, path[0]: joined}
    items = [(key, value) for key, value in rest.items() if key != path[0]]
    items.insert(position, (path[0], messages))
    return dict(items)


def to_metadata(rest: Mapping[str, JsonValue], envelope: Envelope) -> dict[str, JsonValue]:
    said = {key: value for key, value in asdict(envelope).items() if key != "own"}
    if KEY in rest:
        said["own"] = [list(rest).index(KEY), rest[KEY]]
    return {**{key: value for key, value in rest.items() if key != KEY}, KEY: said}


def from_metadata(metadata: Mapping[str, JsonValue] | None) -> tuple[dict[str, JsonValue], Envelope] | None:
    """What `to_metadata` made of a record; None for a thread that was not imported."""
    said = (metadata or {}).get(KEY)
    if metadata is None or not isinstance(said, dict) or not said.keys() >= _REQUIRED:
        return None
    envelope = Envelope(**{name: said[name] for name in said if name in _NAMES})
    items = [(key, value) for key, value in metadata.items() if key != KEY]
    if envelope.own is not None:
        items.insert(envelope.own[0], (KEY, envelope.own[1]))
    return dict(items), envelope


_NAMES = {field.name for field in fields(Envelope)}
_REQUIRED = _NAMES - {"own"}
