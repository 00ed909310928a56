"""The tips that this process wrote last, so that its next append needs no preflight.

A remembered tip is only a guess at what a preflight would see. The write that follows is guarded by the branch's stamp,
which every write of the row renews, so a write on a stale guess writes nothing. The cache is bounded; the entry that
was used least recently goes first.
"""

from __future__ import annotations

from collections import OrderedDict

from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.rows.encryption import Tenant

SIZE = 4_096
"""Branches remembered: about a kilobyte each."""
_MANY_CALLS = 64

BranchKey = tuple[str, str, int | None]
"""Tenant, thread and branch as stored. Branch None is a key of its own: it means whichever branch is active, and
whoever activates another one moves the stamp.
"""


class TipCache:
    """One per database object. A SQLite file's is used from the writer's thread and from event loops: each call is one
    operation of the OrderedDict, which is atomic, and a lost entry costs one preflight.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._seen: OrderedDict[BranchKey, Seen] = OrderedDict()

    def take(self, request: AppendRequest) -> Seen | None:
        """The remembered tip, removed until the append that uses it stores the next one: each is used once."""
        return self._seen.pop((request.tenant.key, request.thread, request.branch), None)

    def remember(self, request: AppendRequest, seen: Seen | None) -> None:
        if seen is None or seen.tip is None or len(seen.tip.open_calls) > _MANY_CALLS:
            return
        if seen.tip.partial_seq is None:  # else the next message may be that one, completed: it needs a preflight
            self._keep((request.tenant.key, request.thread, request.branch), seen)

    def learn(self, tenant: Tenant, thread: str, seen: Seen) -> None:
        """The tip of a thread that was just made, as its active branch."""
        self._keep((tenant.key, thread, None), seen)

    def _keep(self, key: BranchKey, seen: Seen) -> None:
        self._seen[key] = seen
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
