"""Takes over the draft at the end of a branch: the batch completes it, interrupts it, or goes on in its place.

An interruption also ends the draft's run: it becomes `cancelled`. The ledger cannot know whether the agent continues,
so the application can still finish such a run with another status (`runs.finish`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from chatledger.errors import DraftLive, IdConflict, RunLost
from chatledger.ids import new_stamp
from chatledger.models import Appended, ChatMessage, Violation
from chatledger.rules import Tip, complete, grow
from chatledger.storage.append.draft_rows import PartialKey, PartialWrite, write_partial
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest, is_answer
from chatledger.storage.append.write import TryAgain
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.path import load_range
from chatledger.storage.rows.messages import encode_all
from chatledger.storage.schema.text import decode_text, encode_key, encode_text, write_mark

_STAYS = ("role", "run_id", "tool_call_id")


def is_live(tip: Tip) -> bool:
    """Whether the message at the end is partial and belonged to its writer when the tip was read. Once its lease is
    over, an append marks it as interrupted and follows it.
    """
    return tip.partial_seq is not None and tip.lease is not None and tip.lease.holds


def draft_live(thread_id: str, branch: int, tip: Tip, message_id: str | None) -> DraftLive:
    """The error for a draft that `is_live` found. Its caller may compare `until` with the clock of this process."""
    assert tip.lease is not None
    return DraftLive(thread_id, branch, tip.partial_seq or 0, message_id, datetime.now(UTC) + tip.lease.left)


def overwrites_partial(request: AppendRequest, seen: Preflight) -> bool:
    """Whether the batch is one message with the id of the partial message at the end, which it completes. A draft may
    also take the place of a draft whose lease is over.

    Raises DraftLive if a draft is opened while another one still writes the message, and the caller does not interrupt
    it.
    """
    if len(request.messages) != 1 or seen.tip is None or seen.branch is None or seen.tip.partial_seq is None:
        return False
    if seen.found.get(request.message_ids[0]) != (seen.branch, seen.tip.partial_seq):
        return False
    if request.messages[0].state != "partial":
        return True
    lease = seen.tip.lease
    if request.draft is None or (lease is not None and lease.writer == request.draft):  # an attempt of this request
        return False
    if lease is not None and is_live(seen.tip) and not request.interrupt and request.fence is None:
        raise draft_live(request.thread_id, seen.branch, seen.tip, decode_text(request.message_ids[0]))
    return True


def overwrite_partial(sql: WriteSql, request: AppendRequest, seen: Preflight) -> Appended | TryAgain:
    """Overwrites the partial message with the one of the batch. If the request `continues` it, the stored words stay,
    and only the writer and the lease change. Raises IdConflict if the role, the run or the answered call differ, and
    RuleViolation.
    """
    assert seen.tip is not None
    assert seen.branch is not None
    message, seq = request.whole(0), seen.tip.last_seq
    stored = load_range(sql, request.tenant, request.thread, seen.branch, seq, seq)
    if not stored:
        return TryAgain()
    _refuse_another(stored[0], message)
    encoded, before = request.rows[0], None
    if request.continues:
        (before,) = encode_all(stored)
        message = stored[0].model_copy(update={} if message.name is None else {"name": message.name})
        (encoded,) = encode_all([message])
    broken: Sequence[Violation] = stored[0].violations
    if message.state == "partial":
        tip = grow(seen.tip, message, branch=seen.branch)._replace(lease=request.lease_from(request.now))
    else:
        level = request.rules or seen.rules or request.default_rules
        tip, broken = complete(seen.tip, message, branch=seen.branch, level=level, opened=broken)
    write = PartialWrite(
        key=PartialKey(request.tenant, request.thread, seen.branch, seq, request.message_ids[0]),
        stamp=seen.stamp,
        new_stamp=new_stamp(),
        tip=tip,
        encoded=encoded,
        before=before,
        state=message.state,
        violations=broken,
        now=request.now,
    )
    if not write_partial(sql, write):
        return TryAgain()
    place = {"thread_id": request.thread_id, "branch": seen.branch, "seq": seq}
    given = {"created_at": stored[0].created_at, "violations": list(broken)}
    whole = message.model_copy(update={**place, **given})
    mark = write_mark(request.thread, seen.branch, seq, write.new_stamp)
    return Appended([whole], mark, seq)


def _refuse_another(stored: ChatMessage, message: ChatMessage) -> None:
    for name in _STAYS:
        if getattr(stored, name) != getattr(message, name):
            taken = stored.message_id or ""
            detail = f"id {taken!r}: is stored as a partial message with another {name}"
            raise IdConflict("message", taken, detail, seq=stored.seq)


# --- The fence of an answer -------------------------------------------------------------------------------------------

_LEASE = "SELECT 1 FROM {schema}run_leases WHERE tenant_id = :tenant AND thread_id = :thread AND run_id = :run"
_HELD = f"{_LEASE} AND attempt = :attempt AND worker_id = :worker AND (paused_at IS NOT NULL) = :paused"


def require_fence(sql: ReadSql, request: AppendRequest) -> None:
    """Raises RunLost if the request names the run of an open answer and is not of the attempt that holds it.

    Whoever takes an answer up or ends it renews the stamp of its branch. So this looks after the stamp was read, and
    the stamp stops a write that was judged before.
    """
    fence, place = request.fence, {"tenant": request.tenant.key, "thread": request.thread}
    if fence is not None and not sql.fetch(_HELD, {**place, **fence._asdict()}):
        raise RunLost(decode_text(fence.run))
    for run in request.runs:
        if is_answer(run) and (fence is None or run != fence.run) and sql.fetch(_LEASE, {**place, "run": run}):
            raise RunLost(decode_text(run))


# --- The end of the run -----------------------------------------------------------------------------------------------

_REASON = "message {} of branch {} was interrupted before it was complete"
_IS_REASON = re.compile(_REASON.format(r"\d+", r"\d+"))

_RUN = """
SELECT r.run_id FROM {schema}messages m JOIN {schema}runs r ON r.tenant_id = m.tenant_id AND r.run_id = m.run_id
WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.branch = :branch AND m.seq = :seq AND r.ended_at IS NULL
"""


def find_run_end(sql: WriteSql, request: AppendRequest, branch: int, seq: int) -> Mapping[str, str] | None:
    """The parameters that end the run of the message that the append interrupts. None if the message has no run, if
    that run has ended, if it is an answer's, which its own attempt ends, or if the append continues it.
    """
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": branch, "seq": seq}
    found = [row[0] for row in sql.fetch(_RUN, place)]
    runs = {message.run_id for message in request.messages if message.state != "synthetic"}
    goes_on = [encode_key(run, "run_id") for run in runs if run is not None]
    if not found or is_answer(found[0]) or found[0] in goes_on:
        return None
    error = encode_text(_REASON.format(seq, branch))
    if (encryption := request.tenant.encryption) is not None:
        ((error,),) = encryption.encrypt("runs", ("error",), [(error,)], found[0])
    return {"ended_run": found[0], "run_error": error}


def ended_by_ledger(status: str, error: str | None) -> bool:
    return status == "cancelled" and error is not None and _IS_REASON.fullmatch(error) is not None
