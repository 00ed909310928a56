"""Preflight: one statement that reads the branch row and every stored message, on any branch, with an id of the batch.

It comes before the judgement, so that an append finds its own repeat before a rule can refuse it
(`docs/contribute/append-and-history.md`, "The order of judgement").
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chatledger.models import RulesLevel
from chatledger.models.json import dumps
from chatledger.rules import Lease, OpenCall, Tip, Writer
from chatledger.storage.append.request import After, AppendRequest
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.history.path import Segment, read_lineage
from chatledger.storage.history.window_request import branch_column
from chatledger.storage.rows.encrypted import ENCRYPTED_TENANT, refuse_recorded, tenant_encrypted
from chatledger.storage.rows.encryption import damaged_cell
from chatledger.storage.schema.tables import branches
from chatledger.storage.schema.text import (
    CLOCK,
    UNREADABLE,
    decode_object,
    decode_text,
    encode_json,
    from_microseconds,
    to_microseconds,
)

_PREFLIGHT_SQLITE = """
SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL, EXISTS ({encrypted}), b.branch, b.lineage, b.stamp,
       b.absent, b.last_seq, b.last_role, b.open_calls, b.partial_seq, {clock}, m.message_id, m.branch, m.seq
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch, t.active_branch)
  AND {own}
LEFT JOIN {schema}branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN {schema}messages m
  ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id
  AND m.message_id IN (SELECT value FROM json_each(CASE WHEN {own} THEN :ids END))
WHERE t.tenant_id = :tenant AND t.thread_id = :thread
"""
# One lookup by value for each id. With a join or `= ANY`, PostgreSQL filters the whole thread by the ids if the
# database has no statistics or if most threads are short.
_PREFLIGHT_POSTGRESQL = """
SELECT t.user_id, t.rules, t.active_branch, f.branch IS NOT NULL, EXISTS ({encrypted}), b.branch, b.lineage, b.stamp,
       b.absent, b.last_seq, b.last_role, b.open_calls, b.partial_seq, {clock}, m.message_id, m.branch, m.seq
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch::int, t.active_branch)
  AND {own}
LEFT JOIN {schema}branches f ON f.tenant_id = t.tenant_id AND f.thread_id = t.thread_id AND f.branch = 1
LEFT JOIN LATERAL (
  SELECT one.* FROM unnest(CASE WHEN {own} THEN :ids::text[] END) AS given (id), LATERAL (
    SELECT s.message_id, s.branch, s.seq FROM {schema}messages s
    WHERE s.tenant_id = :tenant::text AND s.thread_id = :thread::text AND s.message_id = given.id LIMIT 1
  ) AS one
) AS m ON true
WHERE t.tenant_id = :tenant::text AND t.thread_id = :thread::text
"""
# Nothing of another user's thread is looked up but its owner, or the time would tell that the thread exists.
_OWN = "(:user::text IS NULL OR t.user_id = :user::text)"
_PREFLIGHTS = {
    "postgresql": _PREFLIGHT_POSTGRESQL.replace("{encrypted}", ENCRYPTED_TENANT).replace("{own}", _OWN),
    "sqlite": _PREFLIGHT_SQLITE.replace("{encrypted}", ENCRYPTED_TENANT).replace("{own}", _OWN.replace("::text", "")),
}
_PREFLIGHTS = {dialect: text.replace("{clock}", CLOCK[dialect]) for dialect, text in _PREFLIGHTS.items()}
LOOK = _PREFLIGHTS["postgresql"]
# The facts that an append `after` a message needs as well, to make a branch.
_LAST_BRANCH = "(SELECT max(n.branch) FROM {schema}branches n WHERE n.tenant_id = :tenant AND n.thread_id = :thread)"
_PREFLIGHTS_AFTER = {
    dialect: statement.replace("SELECT t.user_id", f"SELECT {_LAST_BRANCH}, t.user_id", 1)
    for dialect, statement in _PREFLIGHTS.items()
}
_LOCK = """
SELECT 1 FROM {schema}branches b
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch = coalesce(:branch::int,
  (SELECT t.active_branch FROM {schema}threads t WHERE t.tenant_id = :tenant AND t.thread_id = :thread))
FOR UPDATE
"""
_ACTIVE = "(SELECT t.active_branch FROM {schema}threads t WHERE t.tenant_id = :tenant AND t.thread_id = :thread)"
_LOCK_AFTER = f"""
SELECT 1 FROM {{schema}}branches b
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch IN (:branch::int, {_ACTIVE})
ORDER BY b.branch <> {_ACTIVE}, b.branch FOR UPDATE
"""


@dataclass(slots=True)
class Preflight:
    """The facts that a preflight read. `found` maps a stored message id to (branch, seq). `tip` is None if the branch
    does not exist. `path` is the lineage of the branch, read only if an id was found, or for an append `after` a
    message. `forked`: the thread has more than one branch. `touched` is the time of the last update of the thread's
    `active_at`, if known. `absent` is the number of positions of the branch that hold no message; None if no message of
    the thread was ever removed, so that the append looks for an id in `messages` only. `user_id` is the thread's user
    as stored, who never changes. `hidden`: the thread belongs to a user other than the caller's, so this call does not
    find it. `run` is a run of the thread that exists.

    Only for an append after a message: `after` is the (branch, seq) of the message that it names by its id, and
    `last_branch` is the highest number of a branch.
    """

    thread_exists: bool
    rules: RulesLevel | None = None
    active_branch: int = 0
    branch: int | None = None
    tip: Tip | None = None
    stamp: int = 0
    path: Sequence[Segment] = ()
    forked: bool = False
    found: dict[str, tuple[int, int]] = field(default_factory=dict)
    touched: datetime | None = None
    absent: int | None = None
    after: tuple[int, int] | None = None
    last_branch: int = 0
    user_id: str | None = None
    hidden: bool = False
    run: str | None = None


def preflight(sql: WriteSql, request: AppendRequest, *, lock: bool = False) -> Preflight:
    """With `lock`, the branch row is locked first, so that it cannot change before the transaction ends. Raises
    DamagedCell, and EncryptionError if the tenant is encrypted and the ledger has no keys.
    """
    refuse_recorded(sql, request.tenant)
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": branch_column(request.branch)}
    if lock and sql.dialect == "postgresql":
        # A statement of its own: the preflight must see what the last lock holder committed.
        sql.fetch(_LOCK if request.after is None else _LOCK_AFTER, place)
    wanted, statements = request.message_ids, _PREFLIGHTS
    if request.after is not None:
        wanted, statements = _with_after(request), _PREFLIGHTS_AFTER
    ids: Any = wanted if sql.dialect == "postgresql" else dumps(wanted)
    asked = {"user": request.tenant.user, "ids": ids}
    return read_preflight(request, sql.fetch(statements[sql.dialect], place | asked))


def read_preflight(request: AppendRequest, rows: Sequence[Row]) -> Preflight:
    """Read the rows of a preflight. Raises DamagedCell and EncryptionError."""
    if not rows:
        return Preflight(thread_exists=False)
    user_id, rules, active_branch, forked, encrypted, branch, lineage, stamp, absent, *tip = rows[0][-17:-3]
    if request.tenant.user not in (None, user_id):  # checked first, so that no repeat and no damage reveals the thread
        return Preflight(thread_exists=False, hidden=True)
    if encrypted and request.tenant.encryption is None:
        raise tenant_encrypted(request.tenant.name)
    for name, number in (("stamp", stamp), ("absent", absent or 0)):
        if branch is not None and type(number) is not int:
            raise damaged_cell(branches, name, {"thread_id": request.thread_id, "branch": branch})
    found = {id_: (on, seq) for *_, id_, on, seq in rows if id_ is not None}
    after = None if request.after is None else _take_after(request.after, request, found)
    with_path = found or request.after is not None
    return Preflight(
        thread_exists=True,
        rules=rules,
        active_branch=active_branch,
        branch=branch,
        tip=None if branch is None else read_tip(request.thread_id, branch, *tip),
        stamp=stamp,
        path=read_lineage(lineage, request.thread_id, branch) if with_path and branch is not None else (),
        forked=bool(forked),
        found=found,
        absent=absent,
        after=after,
        last_branch=0 if request.after is None else rows[0][0] or 0,
        user_id=user_id,
    )


def _with_after(request: AppendRequest) -> list[str]:
    """The ids to look for: those of the batch, and the one that the batch follows."""
    named = None if request.after is None else request.after.message
    if isinstance(named, str) and named not in request.message_ids:
        return [*request.message_ids, named]
    return request.message_ids


def _take_after(after: After, request: AppendRequest, found: dict[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Take the message that the batch follows out of the messages that the preflight found."""
    if isinstance(after.message, str):
        take = found.get if after.message in request.message_ids else found.pop
        return take(after.message, None)
    return after.message if isinstance(after.message, tuple) else None


def read_tip(
    thread_id: str,
    branch: int,
    last_seq: int,
    last_role: str | None,
    open_calls: str | None,
    partial_seq: int | None,
    clock: int | None = None,
) -> Tip:
    """`clock` is the present time as `CLOCK` gives it. Raises DamagedCell."""
    place = {"thread_id": thread_id, "branch": branch}
    if type(last_seq) is not int:
        raise damaged_cell(branches, "last_seq", place)
    role = None if last_role is None else decode_text(last_role)
    with suppress(*UNREADABLE):
        waiting = {} if open_calls is None else decode_object(open_calls)
        partial = waiting.get("partial", {})
        return Tip(
            last_seq=last_seq,
            last_role=role,
            open_calls=tuple(OpenCall(*call) for call in waiting.get("calls", ())),
            answered=tuple(waiting.get("answered", ())),
            turn_run=waiting.get("run"),
            partial_seq=partial_seq,
            partial_calls=tuple(OpenCall(*call) for call in partial.get("calls", ())),
            lease=_read_lease(partial.get("lease"), clock),
        )
    raise damaged_cell(branches, "open_calls", place)


def write_open_calls(tip: Tip) -> str | None:
    """The column open_calls. It is NULL unless calls wait for results, or results came after the last other message, or
    a partial message has calls or a lease.
    """
    if not tip.open_calls and not tip.answered and tip.partial_seq is None:
        return None
    partial = {"calls": _write_calls(tip.partial_calls), "lease": _write_lease(tip.lease)}
    waiting: dict[str, Any] = {
        "calls": _write_calls(tip.open_calls),
        "answered": list(tip.answered),
        "run": tip.turn_run,
        "partial": {key: value for key, value in partial.items() if value},
    }
    return encode_json({key: value for key, value in waiting.items() if value not in (None, [], {})} or None)


def _write_calls(calls: Sequence[OpenCall]) -> list[list[Any]]:
    return [[call.branch, call.seq, call.idx, call.id, call.name] for call in calls]


def _write_lease(lease: Lease | None) -> list[Any] | None:
    if lease is None:
        return None
    token, *of_holder = lease.writer or (None,)
    return [to_microseconds(lease.written), lease.seconds, token, *(of_holder if any(of_holder) else ())]


def _read_lease(stored: list[Any] | None, clock: int | None) -> Lease | None:
    if stored is None:
        return None
    written, seconds, *of_draft = stored  # schemas before 0005 keep no writer
    writer = Writer(*of_draft[:3]) if of_draft and of_draft[0] is not None else None
    read_at = datetime.now(UTC) if clock is None else from_microseconds(clock)
    return Lease(from_microseconds(written), seconds, writer, read_at)
