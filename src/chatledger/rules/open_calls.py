"""The calls that wait for a result, and which of them a result answers (R6 and R7).

Ids need not be unique: several providers restart at `call_0` in each reply. So a result with an id answers an open call
of that id in the latest message that has one, and the first such call there. A result without an id answers the first
open call of its name, and one without a name the first open call. Thousands of calls may wait, and each is looked at a
few times in all.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import islice

from chatledger.rules.tip import OpenCall

Place = tuple[int, int, int]
"""Branch, seq and index of a call."""


class OpenCalls:
    """Calls are added in their order. It is true if there are some."""

    def __init__(self, calls: Iterable[OpenCall] = ()) -> None:
        self._open: dict[Place, OpenCall] = {}
        self._all: deque[OpenCall] = deque()
        self._by_name: defaultdict[str, deque[OpenCall]] = defaultdict(deque)
        self._by_id: defaultdict[str | None, list[deque[OpenCall]]] = defaultdict(list)
        self.add(calls)

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def in_order(self) -> tuple[OpenCall, ...]:
        return tuple(self._open.values())

    def first(self, count: int) -> list[OpenCall]:
        return list(islice(self._open.values(), count))

    def at(self, place: Place | None) -> OpenCall | None:
        """The open call at this place."""
        return None if place is None else self._open.get(place)

    def add(self, calls: Iterable[OpenCall]) -> None:
        """Add the calls of a message."""
        for call in calls:
            self._open[call[:3]] = call
            self._all.append(call)
            self._by_name[call.name].append(call)
            of_messages = self._by_id[call.id]
            if not of_messages or not self._is_beside(call, of_messages[-1]):
                of_messages.append(deque())
            of_messages[-1].append(call)

    def has(self, id_: str | None) -> bool:
        """Whether a call with this id, or without an id, is open."""
        return self._of_latest_message(id_) is not None

    def find(self, id_: str | None, name: str | None) -> OpenCall | None:
        """The call that a result with this id and name answers."""
        if id_ is not None:
            return self._of_latest_message(id_)
        return self._first(self._all if name is None else self._by_name.get(name, deque()))

    def close(self, call: OpenCall) -> None:
        """The call has a result. The queues drop it when it comes to their front."""
        self._open.pop(call[:3], None)

    def _of_latest_message(self, id_: str | None) -> OpenCall | None:
        of_messages = self._by_id.get(id_, [])
        while of_messages:
            if (call := self._first(of_messages[-1])) is not None:
                return call
            of_messages.pop()
        return None

    def _first(self, calls: deque[OpenCall]) -> OpenCall | None:
        while calls and calls[0][:3] not in self._open:
            calls.popleft()
        return calls[0] if calls else None

    @staticmethod
    def _is_beside(call: OpenCall, others: deque[OpenCall]) -> bool:
        return bool(others) and (others[-1].branch, others[-1].seq) == (call.branch, call.seq)
