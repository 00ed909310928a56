"""Several appends that are planned on cached tips and written together.

On SQLite they share a transaction. All of them are undone if one fails; each then runs alone and finds its own error.

On PostgreSQL appends of one tenant share a statement. It skips the branches for which a key would refuse it: an id of
an append is stored already, or a run belongs to another thread. `postgresql/rejudge.py` then judges those appends anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from chatledger.models import Appended
from chatledger.storage.append.attempt import appended, plan_on_cached_tip, preflight_after
from chatledger.storage.append.guarded_write import TABLES, Source, Step, chain, columns_of
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import BranchKey, TipCache, branch_key
from chatledger.storage.append.write import ACTIVITY_RESOLUTION, Plan, Written, place_of
from chatledger.storage.rows.encrypted import UNLESS_ENCRYPTED

LOCK_TIMEOUT = "50ms"
"""The longest wait for a lock of a row, of a statement that several appends share. It skips branches that are locked.
A wait is left for a run or an id that another transaction is inserting, and for the row of a thread that another
transaction is changing.
"""


@dataclass(slots=True)
class Planned:
    """The plans of those appends that the cached tips let through. A branch may have several, each judged on the one
    before it.
    """

    plans: dict[BranchKey, dict[int, Plan]] = field(default_factory=dict)
    """By branch, and by the index of the request."""
    tips: dict[BranchKey, tuple[AppendRequest, Preflight]] = field(default_factory=dict)
    """By branch: its last request, and what a preflight would see after it."""
    taken: dict[BranchKey, tuple[AppendRequest, Preflight]] = field(default_factory=dict)
    """By branch: its first request, and the cached tip."""
    ids: set[tuple[str, str]] = field(default_factory=set)
    """Of the messages that have a caller's own id or that of a key: their threads and ids."""
    runs: dict[str, str] = field(default_factory=dict)
    """The thread for which a run is created unless it exists."""

    def has_key_of(self, request: AppendRequest) -> bool:
        """Whether a plan has an id of the request too, or one of its runs for another thread. One statement cannot
        write both.
        """
        thread = request.thread
        if not request.ids_are_new and not self.ids.isdisjoint([(thread, id_) for id_ in request.message_ids]):
            return True
        return bool(self.runs) and any(self.runs.get(run, thread) != thread for run in request.runs)

    def add(self, index: int, plan: Plan, seen: Preflight) -> None:
        """`seen`: the preflight on which the plan was judged."""
        request, key = plan.request, branch_key(plan.request)
        self.plans.setdefault(key, {})[index] = plan
        self.tips[key] = request, preflight_after(plan, seen, Written(plan.touches))
        if not request.ids_are_new:
            self.ids.update([(request.thread, id_) for id_ in request.message_ids])
        for run, *_ in plan.rows["runs"]:
            self.runs[run] = request.thread

    @property
    def branches(self) -> list[list[Plan]]:
        return [list(plans.values()) for plans in self.plans.values()]

    def stamps_of(self, keys: Iterable[BranchKey]) -> dict[int, int]:
        """The stamps that guard the plans of these branches, by index."""
        stamps: dict[int, int] = {}
        for key in keys:
            plans = self.plans[key]
            stamps |= dict.fromkeys(plans, next(iter(plans.values())).stamp)
        return stamps

    def finish(self, written: Collection[BranchKey], cache: TipCache) -> dict[int, Appended]:
        """The outcomes of the appends to the branches that were written. The cache learns their tips."""
        for key, (request, seen) in self.tips.items():
            if key in written or key not in self.plans:
                cache.remember(request, seen)
        return {index: appended(plan) for key in written for index, plan in self.plans[key].items()}

    def undo(self, cache: TipCache) -> None:
        """Nothing was written: put the tips back into the cache."""
        for request, seen in self.taken.values():
            cache.remember(request, seen)


def plan_group(requests: Sequence[AppendRequest], cache: TipCache) -> Planned:
    """Plan the appends, without the database. An append that needs a preflight, or that writes more than complete
    messages and their runs, has no plan. Neither have the appends after it to the same branch, so that none overtakes
    it.
    """
    planned = Planned()
    stopped: set[BranchKey] = set()
    for index, request in enumerate(requests):
        key = branch_key(request)
        if key in stopped:
            continue
        seen = planned.tips[key][1] if key in planned.tips else cache.take(request)
        if seen is None:
            stopped.add(key)
            continue
        planned.taken.setdefault(key, (request, seen))
        plan = None if planned.has_key_of(request) else plan_on_cached_tip(request, seen)
        if plan is not None and plan.is_plain:
            planned.add(index, plan, seen)
        else:
            planned.tips[key] = request, seen
            stopped.add(key)
    return planned


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def statement_of(branches: Sequence[Sequence[Plan]]) -> tuple[str, dict[str, Any]]:
    """One statement that writes the plans of each of these branches of one tenant. It returns numbers of branches,
    counted from 1: those that it wrote with true, and those that are locked with false. It skips a branch that has
    another stamp by now, one that is locked, and one for which an id is stored already or a run belongs to another
    thread.
    """
    now = min(plan.request.now for plans in branches for plan in plans)  # no run begins after its first message
    parameters: dict[str, Any] = {
        "tenant": branches[0][0].request.tenant.key,
        "thread": [plans[0].request.thread for plans in branches],
        "stamp": [plans[0].stamp for plans in branches],
        "now": now,
        "stale": now - ACTIVITY_RESOLUTION,
    }
    last = [place_of(plans[-1]) for plans in branches]
    parameters |= {name: [place[name] for place in last] for name in _TIP if name not in parameters}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    numbers: dict[str, list[int]] = {name: [] for name in (*TABLES, "touched")}
    for number, plans in enumerate(branches, 1):
        if any(plan.touches for plan in plans):
            numbers["touched"].append(number)
        for plan in plans:
            for name, own in plan.rows.items():
                rows[name] += own
                numbers[name] += [number] * len(own)
    columns = [columns_of(name, own, parameters) for name, own in rows.items() if own]
    parameters |= {f"{name}_numbers": own for name, own in numbers.items() if own}
    own_ids = not all(plan.request.ids_are_new for plans in branches for plan in plans)
    plain = branches[0][0].request.tenant.encryption is None
    steps = (_TOUCH_THREADS,) if numbers["touched"] else ()
    guard = _guard(plain=plain, own_ids=own_ids, runs=bool(rows["runs"]))
    return chain(guard, (*steps, *columns), _ANSWER, _MOVED), parameters


_TIP = {
    "thread": "text",
    "branch": "int",
    "stamp": "bigint",
    "new_stamp": "bigint",
    "last_seq": "bigint",
    "last_role": "text",
    "open_calls": "text",
}
_NEW = ("last_seq", "last_role", "open_calls")
_GIVEN = (
    f"SELECT * FROM unnest({', '.join(f':{name}::{type_}[]' for name, type_ in _TIP.items())})"
    f" WITH ORDINALITY AS g ({', '.join(_TIP)}, number)"
)
# The numbers of the branches for which a key would refuse the whole statement.
_STORED_IDS = (
    "SELECT i.number FROM unnest(:messages_numbers::bigint[], :messages_message_id::text[]) AS i (number, id),"
    " LATERAL (SELECT FROM {schema}messages o WHERE o.tenant_id = :tenant AND o.thread_id = (:thread::text[])[i.number]"
    " AND o.message_id = i.id LIMIT 1) AS o"
)
_FOREIGN_RUNS = (
    "SELECT r.number FROM unnest(:runs_numbers::bigint[], :runs_run_id::text[]) AS r (number, run),"
    " LATERAL (SELECT FROM {schema}runs o WHERE o.tenant_id = :tenant AND o.run_id = r.run"
    " AND o.thread_id <> (:thread::text[])[r.number] LIMIT 1) AS o"
)
# One lookup by value for each branch and thread, whatever the planner knows of the tables. The place of a locked row
# stays the same until the statement ends.
_FREE = (
    "SELECT g.*, b.ctid AS place FROM lock_limit, given g, LATERAL (SELECT o.ctid FROM {schema}branches o"
    " WHERE o.tenant_id = :tenant AND o.thread_id = g.thread AND o.branch = g.branch AND o.stamp = g.stamp"
    " FOR NO KEY UPDATE SKIP LOCKED) AS b"
)
_MOVE_TIPS = (
    f"UPDATE {{schema}}branches b SET stamp = f.new_stamp, {', '.join(f'{name} = f.{name}' for name in _NEW)}"
    " FROM free f WHERE b.tenant_id = :tenant AND b.ctid = f.place RETURNING f.number, b.thread_id, b.branch"
)
# Those that the statement skipped although they have the judged stamps.
_LOCKED = (
    "SELECT g.number, false FROM given g WHERE g.number NOT IN (SELECT number FROM tip) AND EXISTS ("
    "SELECT FROM {schema}branches o WHERE o.tenant_id = :tenant AND o.thread_id = g.thread AND o.branch = g.branch"
    " AND o.stamp = g.stamp)"
)
_TOUCH_THREADS = Step(
    "touched",
    "UPDATE {schema}threads t SET active_at = :now FROM (SELECT o.ctid AS place FROM tip, LATERAL ("
    "SELECT o.ctid FROM {schema}threads o WHERE o.tenant_id = :tenant AND o.thread_id = tip.thread_id"
    " AND o.active_at < :stale FOR NO KEY UPDATE) AS o WHERE tip.number = ANY(:touched_numbers::bigint[])) AS l"
    " WHERE t.tenant_id = :tenant AND t.ctid = l.place",
)
_MOVED = Source((":tenant::text", "tip.thread_id", "tip.branch"), "tip", numbered=True)
_ANSWER = f"SELECT number, true FROM tip UNION ALL {_LOCKED}"


@lru_cache(maxsize=8)
def _guard(*, plain: bool, own_ids: bool, runs: bool) -> str:
    refused = " UNION ALL ".join([_STORED_IDS] * own_ids + [_FOREIGN_RUNS] * runs)
    unless = (UNLESS_ENCRYPTED if plain else "") + (f" AND g.number NOT IN ({refused})" if refused else "")
    return (
        f"WITH lock_limit AS MATERIALIZED (SELECT set_config('lock_timeout', '{LOCK_TIMEOUT}', true)),\n"
        f"given AS ({_GIVEN} WHERE true{unless}),\nfree AS MATERIALIZED ({_FREE}),\ntip AS ({_MOVE_TIPS})"
    )
