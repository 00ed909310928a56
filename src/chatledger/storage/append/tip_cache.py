"""The cache of the tips that this process wrote last. An append on a cached tip needs no preflight.

A cached tip is only a guess at what a preflight would see. The branch's stamp guards the write that follows, and every
write of the branch row renews the stamp, so a write on a stale guess writes nothing. The cache is bounded. The entry
that was stored first is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict

from chatledger.rules import Tip
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.rows.encryption import Tenant

SIZE = 4_096
"""Maximum number of branches in the cache, at about a kilobyte each."""
_LARGEST = 4_096
"""Maximum characters of a tip in the cache, most of which are those of its calls."""
_OF_CALL = 64

BranchKey = tuple[str, str, int | None]
"""Tenant, thread and branch as stored. Branch None is a key of its own: it means the active branch. Activating another
branch renews the stamp of the one that was active, and so does a fork. So an entry of None cannot be used for the wrong
branch, nor for a thread that has more branches by now.
"""


def branch_key(request: AppendRequest) -> BranchKey:
    return request.tenant.key, request.thread, request.branch


class TipCache:
    """One for each database object. The writer's thread and the event loops of a SQLite file share it. Each call is one
    operation of the OrderedDict, which is atomic; a lost entry costs one preflight.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._seen: OrderedDict[BranchKey, Preflight] = OrderedDict()

    def __contains__(self, request: AppendRequest) -> bool:
        return branch_key(request) in self._seen

    def take(self, request: AppendRequest) -> Preflight | None:
        """Remove the tip from the cache and return it: each tip is used once, and its append stores the next one."""
        return self._seen.pop(branch_key(request), None)

    def remember(self, request: AppendRequest, seen: Preflight | None) -> None:
        if seen is not None:
            named = request.branch if request.branch == seen.branch else None  # else it made a branch, the active one
            self._keep((request.tenant.key, request.thread, named), seen)

    def learn(self, tenant: Tenant, thread: str, seen: Preflight) -> None:
        """Store the tip of a thread that was just created, under its active branch."""
        self._keep((tenant.key, thread, None), seen)

    def _keep(self, key: BranchKey, seen: Preflight) -> None:
        """Keep a tip unless it is large, or the next append may complete its last message, which needs a preflight."""
        if seen.tip is None or seen.tip.partial_seq is not None or _characters(seen.tip) > _LARGEST:
            return
        self._seen[key] = seen
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)


def _characters(tip: Tip) -> int:
    calls = sum([len(call.id or "") + len(call.name) + _OF_CALL for call in tip.open_calls])
    return calls + sum([len(id_ or "") + _OF_CALL for id_ in tip.answered])
