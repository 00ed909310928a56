"""Take a record apart for import, and put it together again for export.

The conversation becomes messages, and every other key becomes the thread's metadata, unchanged. The metadata also holds
an envelope, which records how to join the two: the format, the object that held the conversation, and the positions of
its keys in that object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from chatledger.models.json import JsonValue
from chatledger.transfer.records import Container

KEY = "chatledger.import"

Places: TypeAlias = Sequence[tuple[str, int]]
"""Keys with their positions in their object, in the order of the positions."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a conversation in a record: `keys` of the object at `path`.

    Without keys, the record itself is the conversation. If `single`, the conversation is the value of the only key;
    otherwise it is an object of the keys.
    """

    path: Sequence[str] = ()
    keys: Sequence[str] = ()
    single: bool = True


def locate_in(record: JsonValue, path: Sequence[str], keys: Sequence[str]) -> Location:
    """The location of a conversation at the path: the value there. If that value is an object with the last of the
    keys, the location is those keys in it.
    """
    value = record
    for key in path:
        value = value[key]
    if not isinstance(value, dict) or keys[-1] not in value:
        return Location(path[:-1], path[-1:])
    return Location(path, [key for key in keys if key in value], single=len(keys) == 1)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A record taken apart: the conversation is in `payload`, everything else in `rest`."""

    payload: JsonValue
    rest: dict[str, JsonValue]
    path: Sequence[str] = ()
    keys: Places = ()
    single: bool = True


@dataclass(frozen=True, slots=True)
class Envelope:
    """How to put a thread back into its record.

    `imported_at`, `index` and `item` give the order of the records. `own` is the position and the value of a key of the
    record that equals KEY. `around` is the recording that held the request, without its requests.
    """

    format: str
    container: Container
    file: str
    imported_at: str
    index: int
    path: Sequence[str] = ()
    keys: Places = ()
    single: bool = True
    item: int = 0
    around: JsonValue = None
    own: JsonValue = field(default=None)


def take_out(record: JsonValue, location: Location) -> Parcel:
    if not location.keys:
        return Parcel(record, {})
    rest = dict(record)
    inner = rest
    for key in location.path:
        inner[key] = dict(inner[key])  # copies only the objects that lead to the conversation
        inner = inner[key]
    keys = [(key, number) for number, key in enumerate(inner) if key in location.keys]
    taken = {key: inner.pop(key) for key, _ in keys}
    return Parcel(taken[location.keys[0]] if location.single else taken, rest, location.path, keys, location.single)


def pack(payload: JsonValue, rest: Mapping[str, JsonValue], parcel: Parcel | Envelope) -> JsonValue:
    """The record with this conversation in it."""
    if not parcel.keys:
        return payload
    conversation = {parcel.keys[0][0]: payload} if parcel.single else payload
    return _put_in(rest, parcel.path, parcel.keys, conversation)


def _put_in(
    rest: Mapping[str, JsonValue], path: Sequence[str], keys: Places, conversation: Mapping[str, JsonValue]
) -> JsonValue:
    if path:
        inner = rest.get(path[0])
        joined = _put_in(inner if isinstance(inner, dict) else {}, path[1:], keys, conversation)
        return {**rest, path[0]: joined}
    items = [(key, value) for key, value in rest.items() if key not in conversation]
    for key, number in keys:
        if key in conversation:
            items.insert(number, (key, conversation[key]))
    known = {key for key, _ in keys}
    return dict([*items, *((key, value) for key, value in conversation.items() if key not in known)])


def to_metadata(rest: Mapping[str, JsonValue], envelope: Envelope) -> dict[str, JsonValue]:
    values = ((name, getattr(envelope, name)) for name in _NAMES)
    fields = {name: value for name, value in values if value != _DEFAULTS.get(name, ...)}
    fields |= {key: list(map(_as_list, fields[key])) for key in ("path", "keys") if key in fields}
    if KEY in rest:
        fields["own"] = [list(rest).index(KEY), rest[KEY]]
    return {**{key: value for key, value in rest.items() if key != KEY}, KEY: fields}


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def from_metadata(metadata: Mapping[str, JsonValue] | None) -> tuple[dict[str, JsonValue], Envelope] | None:
    """The inverse of `to_metadata`. None for a thread that was not imported."""
    stored = (metadata or {}).get(KEY)
    if metadata is None or not isinstance(stored, dict) or not stored.keys() >= _REQUIRED:
        return None
    envelope = Envelope(**{name: stored[name] for name in stored if name in _NAMES})
    items = [(key, value) for key, value in metadata.items() if key != KEY]
    if envelope.own is not None:
        items.insert(envelope.own[0], (KEY, envelope.own[1]))
    return dict(items), envelope


_NAMES = tuple(member.name for member in fields(Envelope))
_REQUIRED = {"format", "container", "file", "imported_at", "index"}
_DEFAULTS: dict[str, Any] = {"path": (), "keys": (), "single": True, "item": 0, "around": None, "own": None}
