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

from chatledger.formats.streams.base import field, require
from chatledger.formats.streams.tree import GrowingText, Json, Object, Unsure, Value, grow, object_under, whole

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
    elif isinstance(value, str) and key not in _NAMING and isinstance(before, (str, GrowingText, type(None))):
        grow(held, key, value, _kind_of(key, under))
    elif isinstance(value, dict) and isinstance(before, (dict, type(None))) and depth:
        merge(object_under(held, key), value, depth - 1, key)
    elif isinstance(value, list) and depth:
        held[key] = before if isinstance(before, list) else []
        merge_list(held[key], value, depth - 1, key)
    else:
        held[key] = whole(value)


def _kind_of(key: str, under: str) -> type[GrowingText]:
    if key in _VALUES or f"{under}.{key}" in _VALUES:
        return Value
    return GrowingText if key in _DELTAS else Unsure


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
    entry_so_far: Object = {}
    merge(entry_so_far, entry, depth, under)
    return entry_so_far


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
    entries = (other for other in reversed(held) if isinstance(other, dict) and other.get("index") == index)
    return next((other for other in entries if kind in (None, other.get("type"))), None)


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


# --- Calls ------------------------------------------------------------------------------------------------------------
# The tool calls of a stream of chat completions, which arrive in pieces.
#
# `index` distinguishes parallel calls. Some servers give all calls the index 0, or none: then a piece with another id
# and a name begins another call. The index is not part of a message.

_NAMED = {"function": "arguments", "custom": "input"}
"""The types of calls that have a name, each with the key of its arguments."""


class Calls:
    def __init__(self) -> None:
        self.calls: list[Object] = []

    def named(self) -> list[Object]:
        """The calls that can be run, in the order of their indexes."""
        return [call for call in self._ordered() if _is_whole(call)]

    def nameless(self) -> list[Object]:
        return [call for call in self._ordered() if not _is_whole(call)]

    def require(self, pieces: list[Json], path: str) -> None:
        """Raises DecodeError for pieces that would make a call that the codec cannot read."""
        begun = bool(self.calls)
        for piece in pieces:
            require(isinstance(piece, dict), path, "no object")
            for key in ("id", "type"):
                field(piece, key, str, path)
            for key, arguments in _NAMED.items():
                require_named(field(piece, key, dict, path) or {}, arguments, f"{path}.{key}")
            begins = field(piece, "index", int, path) is not None or bool(_name_of(piece)) or "type" in piece
            require(begun or begins, path, "a piece of a call before any call began")
            begun = True

    def add(self, pieces: list[Object]) -> None:
        for piece in pieces:
            call = self._find(piece)
            if call is None:
                call = {}
                self.calls.append(call)
            _merge_call(call, piece)

    def _find(self, piece: Object) -> Object | None:
        """The call that a piece belongs to; None if the piece begins a call."""
        index, id_, name = piece.get("index"), piece.get("id"), _name_of(piece)
        if index is not None:
            earlier = next((call for call in reversed(self.calls) if call.get("index") == index), None)
            another = earlier is not None and id_ and name and earlier.get("id") and earlier["id"] != id_
            return None if another else earlier
        same = next((call for call in reversed(self.calls) if id_ and call.get("id") == id_), None)
        if same is not None or name or not self.calls:
            return same
        return self.calls[-1]

    def _ordered(self) -> list[Object]:
        calls: list[Object] = whole(self.calls)
        if all("index" in call for call in calls):
            calls.sort(key=lambda call: int(call["index"]))
        for call in calls:
            call.pop("index", None)
            if "custom" in call and not call.get("type"):
                call["type"] = "custom"
        return calls


def require_named(named: Object, arguments: str, path: str) -> None:
    field(named, "name", str, path)
    value = named.get(arguments)
    require(value is None or isinstance(value, (str, dict)), f"{path}.{arguments}", "neither text nor an object")


def merge_named(held: Object, piece: Object) -> None:
    """A name may arrive in pieces, like arguments. A repeated name is the same name."""
    for key, value in piece.items():
        if key != "name":
            merge_value(held, key, value)
        elif value != str(held.get("name") or "") and value is not None:
            grow(held, "name", value)
        else:
            held.setdefault("name", value)


def is_named(named: Json) -> bool:
    return bool(named.get("name"))


def _merge_call(call: Object, piece: Object) -> None:
    for key, value in piece.items():
        if key in ("id", "type"):
            call[key] = call.get(key) or value
        elif key == "index":
            call |= {} if value is None else {key: value}
        elif key in _NAMED and isinstance(value, dict):
            merge_named(object_under(call, key), value)
        else:
            merge_value(call, key, value)


def _is_whole(call: Object) -> bool:
    """Whether the codec can read the call: it has a name, or a type of call that needs none."""
    kind = call.get("type") or "function"
    return kind not in _NAMED or is_named(call.get(kind) or {})


def _name_of(piece: Object) -> Json:
    return next((piece[key].get("name") for key in _NAMED if isinstance(piece.get(key), dict)), None)
