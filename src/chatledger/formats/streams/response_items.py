"""The output items of a response while they grow. Finds the item that an event refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chatledger.formats.openai_responses.items import read_item
from chatledger.formats.streams.base import require
from chatledger.formats.streams.tree import Json, Object, whole

_MADE: dict[str, Object] = {"message": {"role": "assistant", "content": []}, "reasoning": {"summary": []}}
"""Items that deltas alone can create."""

_GROWN = ("content", "summary", "arguments", "input", "code", "action", "output", "result")
"""The keys that deltas fill."""


@dataclass(slots=True)
class Grown:
    """An item. A finished item is the provider's whole item, and no delta changes it."""

    index: int
    value: Object
    done: bool = False


class ResponseItems:
    """The items in the order of their `output_index`; items with the same index in the order of their arrival.

    An event names its item by `output_index` and by `item_id`. Some servers send neither, or send wrong values: the
    same index for all items, or another id of the same item in each event.
    """

    def __init__(self, values: Iterable[Object] = ()) -> None:
        self._found = [Grown(index, value, done=True) for index, value in enumerate(values)]

    def whole(self) -> list[Object]:
        return [whole(item.value) for item in sorted(self._found, key=lambda item: item.index)]

    def add(self, index: int | None, value: Object) -> Grown:
        """Add an item that begins, perhaps after its first deltas."""
        before = self._known(index, value) or (None if index is None else self._open(index, value))
        if before is None:
            before = Grown(self._next if index is None else index, value)
            self._found.append(before)
        elif not before.done:
            before.value = _kept(before.value, value)
        return before

    def finish(self, index: int | None, value: Object) -> None:
        """Complete an item. If no other item fits, it is the open item at its index, under another id."""
        before = self._known(index, value) or self._open(index, value)
        if before is None and index is not None:
            before = self._open(index, {"type": value.get("type")})
        item = before or self.add(index, value)
        item.value, item.done = _kept(item.value, value), True

    def replace_first(self, values: list[Object]) -> None:
        """Replace the first items by whole items. The others stay."""
        later = [item for item in self._found if item.index >= len(values)]
        self._found = [Grown(index, value, done=True) for index, value in enumerate(values)] + later

    def of(self, kind: str, index: int | None, id_: str | None) -> Grown:
        """Find or create the item that a delta belongs to, of a type. Raises DecodeError if there is none and deltas
        alone cannot create one.
        """
        named = [item for item in reversed(self._found) if id_ and item.value.get("id") == id_]
        placed = [item for item in reversed(self._found) if index in (None, item.index)]
        both = [item for item in named if item.index == index]
        for item in (*both, *named, *placed):
            if item.value.get("type") == kind:
                return item
        taken = named or (placed and index is not None)
        require(kind in _MADE and not taken, "$.output_index", f"no item of type {kind}")
        return self.add(index, {"type": kind, **({"id": id_} if id_ else {}), **whole(_MADE[kind])})

    @property
    def _next(self) -> int:
        return max((item.index for item in self._found), default=-1) + 1

    def _known(self, index: int | None, value: Object) -> Grown | None:
        """The item with an id of the value."""
        return self._last(index, value, lambda item: _ids(item.value, value) == {True})

    def _open(self, index: int | None, value: Object) -> Grown | None:
        """The unfinished item whose id does not differ from the value's."""
        return self._last(index, value, lambda item: not item.done and False not in _ids(item.value, value))

    def _last(self, index: int | None, value: Object, fits: Callable[[Grown], bool]) -> Grown | None:
        placed = (item for item in reversed(self._found) if index in (None, item.index))
        return next((item for item in placed if item.value.get("type") == value.get("type") and fits(item)), None)


def checked(item: Json) -> Object:
    """The item, if the codec can read it; adds a role that a server left out. Raises DecodeError."""
    require(isinstance(item, dict), "$.item", "no object")
    copy: Object = whole(item)
    if copy.get("type") == "message" and copy.get("role") is None:
        copy["role"] = "assistant"
    read_item(copy, "$.item", lenient=False)
    return copy


def _ids(held: Object, value: Object) -> set[bool]:
    """Whether the ids that both have are equal."""
    pairs = ((held.get(key), value.get(key)) for key in ("id", "call_id"))
    return {first == other for first, other in pairs if first and other}


def _kept(before: Object, value: Object) -> Object:
    """The value, completed from the deltas: some servers send only the rest at the end."""
    grown = {key: before[key] for key in _GROWN if before.get(key) and not value.get(key)}
    return value | grown
