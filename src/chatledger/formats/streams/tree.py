"""JSON that grows: texts that arrive in pieces, and lists whose entries arrive with their index.

Pieces are joined once, when the value is read. Joining at each piece would take quadratic time.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.wire.fields import wrong

Json = Any
Object = dict[str, Json]


class GrowingText:
    """A text that grows: its pieces are joined."""

    __slots__ = ("_pieces",)

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)


class Value(GrowingText):
    """A text that comes whole each time: its last piece."""

    __slots__ = ()

    def __str__(self) -> str:
        return self._pieces[-1] if self._pieces else ""


class Unsure(GrowingText):
    """A text of which nobody knows whether it grows: one piece if all are equal, else they are joined."""

    __slots__ = ()

    @property
    def is_joined(self) -> bool:
        return any(piece != self._pieces[0] for piece in self._pieces)

    def __str__(self) -> str:
        return super().__str__() if self.is_joined else "".join(self._pieces[:1])


class Sparse(dict[Any, Json]):
    """The entries of a list by their index, in any order and with gaps."""

    @property
    def next_index(self) -> int:
        return max(self, default=-1) + 1


def grow(holder: dict[Any, Json], key: Any, piece: str, kind: type[GrowingText] = GrowingText) -> None:
    """Add a piece to the text under a key, which is of that kind; null and an absent key are an empty text."""
    held = holder.get(key)
    if not isinstance(held, GrowingText):
        if held is not None and not isinstance(held, str):
            raise wrong(f"$.{key}", "text", held)
        holder[key] = held = kind(held or "")
    held.add(piece)


def entries(holder: Object, key: str) -> Sparse:
    """The list under a key by its indexes. Raises DecodeError if the value is not a list."""
    held = holder.get(key)
    if isinstance(held, Sparse):
        return held
    if held and not isinstance(held, list):
        raise wrong(f"$.{key}", "a list", held)
    holder[key] = sparse = Sparse(enumerate(held or ()))
    return sparse


def extend(holder: Object, key: str, more: list[Json]) -> None:
    """Add to the list under a key; null and an absent key count as an empty list, and stay if nothing is added."""
    if not more:
        return
    held = holder.get(key)
    if held and not isinstance(held, list):
        raise wrong(f"$.{key}", "a list", held)
    holder[key] = held = held or []
    held += more


def object_under(holder: Object, key: str) -> Object:
    """The object under a key. Creates it if there is none."""
    held = holder.get(key)
    if held is None:
        holder[key] = held = {}
    if not isinstance(held, dict) or isinstance(held, Sparse):
        raise wrong(f"$.{key}", "an object", held)
    return held


def joined_by_guess(message: Object) -> list[str]:
    """The places of the texts of unknown keys whose pieces were joined, such as `list[].key`, each once."""
    paths: dict[str, None] = {}
    pending: list[tuple[str, Json]] = [("", message)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, Unsure) and value.is_joined:
            paths[path] = None
        elif isinstance(value, dict):
            pending += [(f"{path}.{key}" if path else str(key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            pending += [(f"{path}[]", inner) for inner in reversed(value)]
    return list(paths)


def whole(value: Json) -> Json:
    """A copy as plain JSON. Without recursion, since an event may nest as deep as Python's own stack allows."""
    root = [value]
    pending: list[Any] = [root]
    while pending:
        holder = pending.pop()
        for key, item in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(item, GrowingText):
                holder[key] = str(item)
            elif isinstance(item, (dict, list)):
                holder[key] = child = _copied(item)
                pending.append(child)
    return root[0]


def _copied(item: Json) -> Json:
    if isinstance(item, Sparse):
        return [item[index] for index in sorted(item)]
    return item.copy()
