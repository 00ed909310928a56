"""Threads chosen by their feedback: those whose scores under a key reach a minimum.

What counts is the latest score that each author gave each run of the thread, since a score that was changed is
recorded again; the mean of these decides. A thread without a score under the key is not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from chatledger.ledger import Ledger

PAGE = 500


async def mean_scores(ledger: Ledger, thread_id: str, keys: Sequence[str]) -> dict[str, float]:
    """The mean of the scores that count, by key; a key without one is missing. Reads all feedback of the thread."""
    latest: dict[str, dict[tuple[str, str | None], float]] = {key: {} for key in keys}
    cursor = None
    while True:
        page = await ledger.feedback.list(thread_id=thread_id, limit=PAGE, cursor=cursor)
        for one in page:  # newest first
            if one.key in latest:
                latest[one.key].setdefault((one.run_id, one.author), one.score)
        cursor = page.next_cursor
        if cursor is None:
            break
    return {key: math.fsum(scores.values()) / len(scores) for key, scores in latest.items() if scores}


async def scored_at_least(ledger: Ledger, thread_ids: Sequence[str], minima: Mapping[str, float]) -> list[str]:
    """The threads that reach every minimum, in the order given. One query a thread."""
    chosen = []
    for thread_id in thread_ids:
        means = await mean_scores(ledger, thread_id, list(minima))
        if all(means.get(key, -math.inf) >= minimum for key, minimum in minima.items()):
            chosen.append(thread_id)
    return chosen
