"""Windows by words, for tests that go through many of them."""

from __future__ import annotations

from typing import Any

from chatledger import Ledger, Newest, Oldest, Tokens, Turns
from chatledger.repositories.history import History
from chatledger.types import Window

MANY = 10_000


def window_of(words: dict[str, Any]) -> Window | None:
    """`{"newest": 3, "before": 9}` as `Newest(3, before=9)`."""
    if "last_turns" in words:
        return Turns(words["last_turns"])
    if "max_tokens" in words:
        return Tokens(words["max_tokens"], words.get("count_tokens"))
    if "newest" in words or "before" in words:
        return Newest(words.get("newest", MANY), before=words.get("before"))
    if "limit" in words or "after" in words:
        return Oldest(words.get("limit", MANY), after=words.get("after"))
    return None


async def read(ledger: Ledger, thread_id: str, *, branch: int | None = None, **words: Any) -> History:
    """The history of a window by words. A seq is one of the active branch if no branch is named."""
    if branch is None and any(isinstance(words.get(name), int) for name in ("before", "after")):
        branch = next(one.branch for one in await ledger.branches.list(thread_id) if one.active)
    run_id = words.pop("run_id", None)
    return await ledger.messages.history(thread_id, window_of(words), branch=branch, run_id=run_id)
