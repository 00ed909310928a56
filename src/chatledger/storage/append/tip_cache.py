"""The tips that this process wrote last, so that its next append need not look.

A remembered tip is only a guess at what a look would see: the write that follows is guarded by the row's stamp, which
is new in every write of it, so a stale guess writes nothing. Bounded, least recently used first out.
"""

from __future__ import annotations

from collections import OrderedDict

from chatledger.storage.append.preflight import Look
from chatledger.storage.append.request import AppendRequest

SIZE = 4_096
"""Branches remembered: about a kilobyte each."""
_MANY_CALLS = 64

Place = tuple[str, str, int | None]


class TipMemory:
    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._seen: OrderedDict[Place, Look] = OrderedDict()

    def recall(self, request: AppendRequest) -> Look | None:
        """Taken out until it is written again: whatever happens to the append, this tip is used once."""
        return self._seen.pop(_place(request), None)

    def remember(self, request: AppendRequest, seen: Look | None) -> None:
        if seen is None or seen.tip is None or len(seen.tip.open_calls) > _MANY_CALLS:
            return
        if seen.tip.partial_seq is None:  # else what comes next may be that message, whole: it must look
            self._keep(_place(request), seen)

    def learn(self, tenant: str, thread: str, seen: Look) -> None:
        """Of the active branch of a thread that is being made. Should that be rolled back, nothing has its stamp."""
        self._keep((tenant, thread, None), seen)

    def _keep(self, place: Place, seen: Look) -> None:
        self._seen[place] = seen
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)


def _place(request: AppendRequest) -> Place:
    """`branch` None is a place of its own: it means whichever is active, and whoever changes that moves the stamp."""
    return request.tenant, request.thread, request.branch
