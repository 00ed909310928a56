"""Merges the deltas of a chat completion into a message.

Texts are joined, objects are merged key by key, and lists are extended by the `index` of their entries, as the SDK of
OpenAI does. These points differ. Each makes the message equal to the message that a request without streaming returns:

- Only texts that are known to be deltas are always joined. Some servers repeat other texts whole in each chunk: those
  that are known keep their last value. Of an unknown text whose pieces are all equal, one is kept; if they differ, they
  are joined, and the stream names the key as unknown.
- A null erases nothing, and numbers are replaced. The SDK adds numbers up.
- An identifying key (`id`, `name`, `format`) is replaced like `type`, because servers repeat it in each chunk.
- Entries without an index are appended, and running texts among them are joined. The SDK raises an error for them.
- Entries of different types are different entries, even if a server gives them the same index.
"""

from __future__ import annotations

from chatledger.formats.streams.tree import Json, Object, Text, Unsure, Value, grow, object_under, whole

_NAMING = frozenset({"type", "index", "id", "format", "name", "tool_call_id"})
_DELTAS = frozenset(
    {"content", "refusal", "reasoning", "reasoning_content", "thinking", "text", "summary", "data", "transcript"}
    | {"arguments", "input"}
)
"""Texts that arrive in pieces, so that equal pieces are words that are said twice."""
_VALUES = frozenset({"channel", "recipient", "executed_tools.arguments"})
"""Texts that arrive whole, each time; some only in the entries of a list."""
_RUNNING = frozenset({"text", "thinking", "reasoning.text", "reasoning.summary"})
"""Types of parts that a server sends in pieces: consecutive parts of such a type are one part."""
_DEPTH = 16
"""How far down objects are merged. A deeper value replaces the one before it."""


def merge(held: Object, delta: Object, depth: int = _DEPTH, under: str = "") -> None:
    """`under` is the key of the object, or of the list that it is an entry of."""
    for key, value in delta.items():
        merge_value(held, key, value, depth, under)


def merge_value(held: Object, key: str, value: Json, depth: int = _DEPTH, under: str = "") -> None:
    before = held.get(key)
    if value is None or (key in _NAMING and value == "" and before is not None):
        held.setdefault(key, None)
    elif isinstance(value, str) and key not in _NAMING and isinstance(before, (str, Text, type(None))):
        grow(held, key, value, _kind_of(key, under))
    elif isinstance(value, dict) and isinstance(before, (dict, type(None))) and depth:
        merge(object_under(held, key), value, depth - 1, key)
    elif isinstance(value, list) and depth:
        held[key] = before if isinstance(before, list) else []
        merge_list(held[key], value, depth - 1, key)
    else:
        held[key] = whole(value)


def _kind_of(key: str, under: str) -> type[Text]:
    if key in _VALUES or f"{under}.{key}" in _VALUES:
        return Value
    return Text if key in _DELTAS else Unsure


def merge_list(held: list[Json], new: list[Json], depth: int = _DEPTH, under: str = "") -> None:
    for entry in new:
        before = _same_entry(held, entry) if isinstance(entry, dict) else None
        if before is not None:
            merge(before, entry, depth, under)
        elif isinstance(entry, dict):
            held.insert(_place(held, entry.get("index")), begun(entry, depth, under))
        else:
            held.append(whole(entry))


def begun(entry: Object, depth: int = _DEPTH, under: str = "") -> Object:
    """A new entry from its first piece, with the lists in it merged as well."""
    made: Object = {}
    merge(made, entry, depth, under)
    return made


def _same_entry(held: list[Json], entry: Object) -> Object | None:
    """The entry that another piece belongs to; None if the piece begins an entry."""
    index, kind = entry.get("index"), entry.get("type")
    if not isinstance(index, int):
        last = held[-1] if held else None
        return (
            last
            if isinstance(kind, str) and kind in _RUNNING and isinstance(last, dict) and _continues(last, entry)
            else None
        )
    found = (one for one in reversed(held) if isinstance(one, dict) and one.get("index") == index)
    return next((one for one in found if kind in (None, one.get("type"))), None)


def _continues(last: Object, entry: Object) -> bool:
    """Whether the entry has the same type, and lists where the last one has lists."""
    shared = [(last[key], value) for key, value in entry.items() if key in last]
    same_shape = all(isinstance(before, list) == isinstance(value, list) for before, value in shared)
    return last.get("type") == entry.get("type") and same_shape


def _place(held: list[Json], index: Json) -> int:
    """The place of a new entry: before those of a greater index."""
    place = len(held)
    while isinstance(index, int) and place and _index_of(held[place - 1]) > index:
        place -= 1
    return place


def _index_of(entry: Json) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    return index if isinstance(index, int) else -1
