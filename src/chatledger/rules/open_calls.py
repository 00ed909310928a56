"""Pairs thousands of calls with thousands of results. For each result `find_call` looks at all open calls; here each
call is looked at a few times in all.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from chatledger.rules.tip import OpenCall


class OpenCalls:
    """The calls that wait for a result. `find` is `find_call`, with an index. Calls are added in their order."""

    def __init__(self, calls: Iterable[OpenCall] = ()) -> None:
        self._open: set[OpenCall] = set()
        self._all: deque[OpenCall] = deque()
        self._by_name: defaultdict[str, deque[OpenCall]] = defaultdict(deque)
        self._by_id: defaultdict[str | None, list[deque[OpenCall]]] = defaultdict(list)
        self.add(calls)

    def add(self, calls: Iterable[OpenCall]) -> None:
        """Add the calls of a message."""
        for call in calls:
            self._open.add(call)
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
        self._open.discard(call)

    def _of_latest_message(self, id_: str | None) -> OpenCall | None:
        of_messages = self._by_id.get(id_, [])
        while of_messages:
            if (call := self._first(of_messages[-1])) is not None:
                return call
            of_messages.pop()
        return None

    def _first(self, calls: deque[OpenCall]) -> OpenCall | None:
        while calls and calls[0] not in self._open:
            calls.popleft()
        return calls[0] if calls else None

    @staticmethod
    def _is_beside(call: OpenCall, others: deque[OpenCall]) -> bool:
        return bool(others) and (others[-1].branch, others[-1].seq) == (call.branch, call.seq)
