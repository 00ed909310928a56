"""The tool calls of a stream of chat completions, which arrive in pieces.

`index` distinguishes parallel calls. Some servers give all calls the index 0, or none: then a piece with another id and
a name begins another call. The index is not part of a message.
"""

from __future__ import annotations

from chatledger.formats.streams.chat_merge import merge_value
from chatledger.formats.streams.events import field, require
from chatledger.formats.streams.tree import Json, Object, grow, object_under, whole

_NAMED = {"function": "arguments", "custom": "input"}
"""The types of calls that have a name, each with the key of its arguments."""


class Calls:
    def __init__(self) -> None:
        self.found: list[Object] = []

    def named(self) -> list[Object]:
        """The calls that can be run, in the order of their indexes."""
        return [call for call in self._ordered() if _is_whole(call)]

    def nameless(self) -> list[Object]:
        return [call for call in self._ordered() if not _is_whole(call)]

    def require(self, pieces: list[Json], path: str) -> None:
        """Raises DecodeError for pieces that would make a call that the codec cannot read."""
        begun = bool(self.found)
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
                self.found.append(call)
            _merge_call(call, piece)

    def _find(self, piece: Object) -> Object | None:
        """The call that a piece belongs to; None if the piece begins a call."""
        index, id_, name = piece.get("index"), piece.get("id"), _name_of(piece)
        if index is not None:
            found = next((call for call in reversed(self.found) if call.get("index") == index), None)
            another = found is not None and id_ and name and found.get("id") and found["id"] != id_
            return None if another else found
        same = next((call for call in reversed(self.found) if id_ and call.get("id") == id_), None)
        if same is not None or name or not self.found:
            return same
        return self.found[-1]

    def _ordered(self) -> list[Object]:
        calls: list[Object] = whole(self.found)
        if all("index" in call for call in calls):
            calls.sort(key=lambda call: int(call["index"]))
        for call in calls:
            call.pop("index", None)
            if "custom" in call and not call.get("type"):
                call["type"] = "custom"
        return calls


def require_named(named: Object, arguments: str, path: str) -> None:
    field(named, "name", str, path)
    given = named.get(arguments)
    require(given is None or isinstance(given, (str, dict)), f"{path}.{arguments}", "neither text nor an object")


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
