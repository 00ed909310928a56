"""Judges the appends that a shared statement left out, on what one look found for all of them.

A look is a preflight, so a refusal by it is final, and a repeat gets its result. What is neither is planned again, for
a second statement. An append that needs more than that, and those behind it on its branch, are left to run alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from chatledger.errors import ChatLedgerError
from chatledger.models import Appended
from chatledger.storage.append.attempt import plan_append
from chatledger.storage.append.group_insert import Planned
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.replay import find_replay, replay_plainly
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import BranchKey, TipCache, branch_key
from chatledger.storage.databases.postgresql.looks import Looks

Outcome = Appended | ChatLedgerError


@dataclass(slots=True)
class Rejudged:
    planned: Planned = field(default_factory=Planned)
    replays: dict[int, Appended] = field(default_factory=dict)
    refusals: dict[int, tuple[BranchKey, ChatLedgerError]] = field(default_factory=dict)

    def finish(self, written: Collection[BranchKey], cache: TipCache) -> dict[int, Outcome]:
        """The outcomes, once the plans of these branches were written. A refusal counts only if the plans that it was
        judged on were written.
        """
        done: dict[int, Outcome] = {**self.replays, **self.planned.finish(written, cache)}
        for index, (key, error) in self.refusals.items():
            if key in written or key not in self.planned.plans:
                done[index] = error
        return done


def rejudge(requests: Sequence[AppendRequest], looks: Looks) -> Rejudged:
    rejudged = Rejudged()
    alone: set[BranchKey] = set()
    for index, request in enumerate(requests):
        key = branch_key(request)
        if key in alone or not _judge(rejudged, index, request, looks):
            alone.add(key)
    return rejudged


def _judge(rejudged: Rejudged, index: int, request: AppendRequest, looks: Looks) -> bool:
    """False if the append must run alone."""
    key, planned = branch_key(request), rejudged.planned
    if not request.messages or request.after is not None or request.draft is not None or request.is_fenced:
        return False
    if planned.has_key_of(request):
        return False
    try:
        seen = looks.seen(request)
        stored = looks.stored(request) if seen.found else []
    except ChatLedgerError:  # the append finds it by itself, and has its own error
        return False
    if _needs_more(request, seen):
        return False
    if seen.thread_exists and key not in planned.tips:
        planned.tips[key] = request, replace(seen, found={}, path=())
    before = planned.tips[key][1] if seen.thread_exists else seen
    try:
        replay = find_replay(request, seen)
        if replay is not None:
            replayed = replay_plainly(request, replay, stored)
            if replayed is not None:
                rejudged.replays[index] = replayed
            return replayed is not None
        plan = plan_append(request, before)
        if plan is None or not plan.is_plain:
            return False
        looks.refuse_foreign_run(request)
    except ChatLedgerError as error:
        rejudged.refusals[index] = key, error
    else:
        planned.add(index, plan, before)
    return True


def _needs_more(request: AppendRequest, seen: Preflight) -> bool:
    """Whether an attempt of the append may create the thread, complete a partial message, or find messages that were
    removed since its first call.
    """
    if not seen.thread_exists:
        return request.creation is not None
    partial = seen.tip is not None and seen.tip.partial_seq is not None
    return partial or (request.has_key and seen.absent is not None)
