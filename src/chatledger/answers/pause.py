"""An answer waits for decisions about calls: a row for each, from the pause on. The last decision ends the pause.

A decision is about what stood there when the answer paused: the call, and the revision of its message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from sqlalchemy import and_, null, select, tuple_, update

from chatledger.answers.stored import (
    NOBODY,
    StoredAnswer,
    clock,
    find_answer,
    hold_lease,
    lease_of,
)
from chatledger.errors import InvalidArgument, RunConflict, RunNotFound
from chatledger.models import ChatMessage
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.preflight import preflight
from chatledger.storage.append.request import AppendRequest, Terms, make_request
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, encrypt_values
from chatledger.storage.schema.columns import Undecoded
from chatledger.storage.schema.tables import messages, run_decisions, run_leases, tool_calls

Decided = Literal["approved", "refused", "result"]
Place = tuple[int, int, int]
"""The branch, seq and index of a call."""


class PendingCall(NamedTuple):
    """A call whose tool waits for a decision, and why."""

    place: Place
    reason: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided about a call; with `decision` None the call still waits. `call_id` and `now`, the revision
    of the message, are None if somebody removed the message since.
    """

    place: Place
    revision: int | None
    decision: Decided | None
    reason: str | None
    pending_reason: str | None
    begun: bool
    call_id: str | None
    now: int | None
    exists: bool


_KEY = ("branch", "seq", "idx")


def waiting_calls(sql: ReadSql, tenant: Tenant, thread_id: str, run_id: str) -> dict[str, str | None]:
    """Reads the calls for which a paused run waits: the reason of each, by its id. Raises as `decisions_of`."""
    return waiting_of(tenant, read_decisions(sql, tenant, [(thread_id, run_id)]).get(run_id, ()))


def waiting_of(tenant: Tenant, rows: Sequence[Any]) -> dict[str, str | None]:
    """The same of the rows of one run. Raises as `decisions_of`."""
    calls = [_to_decision(tenant, row) for row in rows]
    return {call.call_id or "": call.pending_reason for call in calls if call.decision is None}


def decisions_of(sql: ReadSql, tenant: Tenant, thread_id: str, run_id: str) -> list[Decision]:
    """Reads the decisions about a run, in the order of its calls. Raises DamagedCell and EncryptionError."""
    rows = read_decisions(sql, tenant, [(thread_id, run_id)]).get(run_id, ())
    return [_to_decision(tenant, row) for row in rows]


def read_decisions(sql: ReadSql, tenant: Tenant, answers: Sequence[tuple[str, str]]) -> dict[str, list[Any]]:
    """The rows of several runs, each with its thread, by the run. A damaged row is read too: `waiting_of` raises."""
    table = run_decisions
    of_call = and_(*(tool_calls.c[name] == table.c[name] for name in ("tenant_id", "thread_id", *_KEY)))
    of_message = and_(*(messages.c[name] == table.c[name] for name in ("tenant_id", "thread_id", "branch", "seq")))
    statement = (
        select(table, tool_calls.c.call_id, messages.c.revision.label("now"), messages.c.seq.label("stored"))
        .outerjoin(tool_calls, of_call)
        .outerjoin(messages, of_message)
        .where(table.c.tenant_id == tenant.name, tuple_(table.c.thread_id, table.c.run_id).in_(answers))
        .order_by(*(table.c[name] for name in ("thread_id", "run_id", *_KEY)))
    )
    rows_of: dict[str, list[Any]] = {}
    for row in sql.execute(statement).mappings():
        rows_of.setdefault(row["run_id"], []).append(row)
    return rows_of


def _of_run(tenant: Tenant, thread_id: str, run_id: str) -> list[Any]:
    own = {"tenant_id": tenant.name, "thread_id": thread_id, "run_id": run_id}
    return [run_decisions.c[name] == value for name, value in own.items()]


def _to_decision(tenant: Tenant, row: Any) -> Decision:
    if isinstance(row["call_id"], Undecoded):
        raise damaged_cell(tool_calls, "call_id", row)
    own = decrypt_values(tenant, run_decisions, {name: row[name] for name in run_decisions.c.keys()})  # noqa: SIM118
    place = (own["branch"], own["seq"], own["idx"])
    return Decision(
        place=place,
        revision=own["revision"],
        decision=own["decision"],
        reason=own["reason"],
        pending_reason=own["pending_reason"],
        begun=own["begun_at"] is not None,
        call_id=row["call_id"],
        now=row["now"],
        exists=row["stored"] is not None,
    )


# --- By the attempt ---------------------------------------------------------------------------------------------------


def pause(sql: WriteSql, terms: Terms, answer: StoredAnswer, waiting: Sequence[PendingCall]) -> bool:
    """Leave the answer until each of the calls has a result or a decision. False, with nothing written, if none of them
    is open any more: somebody has appended the results. Raises RunLost.
    """
    tenant, request = terms.tenant, _nothing(terms, answer)
    tip = preflight(sql, request, lock=True).tip
    hold_lease(sql, tenant, answer)
    still_open = set() if tip is None else {(call.branch, call.seq, call.idx) for call in tip.open_calls}
    waiting = [call for call in waiting if call.place in still_open]
    if not waiting:
        return False
    for call in waiting:
        sql.execute(
            run_decisions.delete().where(*_of_run(tenant, *answer.names), *_at(call.place))
        )  # of an earlier pause
        key = {
            "thread_id": answer.run.thread_id,
            "run_id": answer.run.run_id,
            **dict(zip(_KEY, call.place, strict=True)),
        }
        values = encrypt_values(tenant, run_decisions, {**key, "pending_reason": call.reason, "reason": None})
        sql.execute(
            run_decisions.insert().values(tenant_id=tenant.name, **values, revision=_revision(sql, request, call))
        )
    paused = {"paused_at": clock(sql), "worker_id": NOBODY}
    sql.execute(update(run_leases).where(lease_of(tenant, answer)).values(**paused))
    return True


def _revision(sql: ReadSql, request: AppendRequest, call: PendingCall) -> int | None:
    """That of the message of the call."""
    branch, seq, _ = call.place
    own = (messages.c.tenant_id == request.tenant.name, messages.c.thread_id == request.thread_id)
    of_message = select(messages.c.revision).where(*own, messages.c.branch == branch, messages.c.seq == seq)
    return sql.execute(of_message).scalar_one_or_none()


def _at(place: Place) -> list[Any]:
    return [run_decisions.c[name] == number for name, number in zip(_KEY, place, strict=True)]


def begin_call(sql: WriteSql, tenant: Tenant, answer: StoredAnswer, place: Place) -> None:
    """Note that the attempt runs an approved call now. Raises RunLost, and the call is not run then."""
    hold_lease(sql, tenant, answer)
    own = and_(*_of_run(tenant, *answer.names), *_at(place))
    sql.execute(update(run_decisions).where(own).values(begun_at=clock(sql)))


# --- By whoever decides -----------------------------------------------------------------------------------------------


_ARGUMENTS: Mapping[Decided, str] = {"result": "results", "approved": "approve", "refused": "refuse"}


@dataclass(frozen=True, slots=True)
class Resumption:
    """By `call_id`: the results of calls, those that are approved, and those that are refused, with the reason."""

    results: Mapping[str, ChatMessage]
    approve: Sequence[str]
    refuse: Mapping[str, str | None]

    def decisions(self) -> dict[str, tuple[Decided, str | None]]:
        """Raises InvalidArgument for a call that is named twice."""
        decided: dict[str, tuple[Decided, str | None]] = {}
        named: list[tuple[str, Decided, str | None]] = [(call_id, "result", None) for call_id in self.results]
        named += [(call_id, "approved", None) for call_id in self.approve]
        named += [(call_id, "refused", reason) for call_id, reason in self.refuse.items()]
        for call_id, decision, reason in named:
            if call_id in decided and decided[call_id][0] != decision:
                raise InvalidArgument(_ARGUMENTS[decision], f"names call {call_id!r}, which another argument names too")
            decided[call_id] = decision, reason
        return decided


def resume(sql: WriteSql, terms: Terms, run_id: str, resumption: Resumption) -> StoredAnswer:
    """Store the decisions, all or none. The answer goes on once none of its calls waits.

    Raises RunNotFound, InvalidArgument for a call that never waited, and RunConflict for one that was decided
    otherwise, whose message was revised or removed since, or whose answer has ended.
    """
    tenant = terms.tenant
    answer = find_answer(sql, tenant, run_id)
    if answer is None:
        raise RunNotFound(run_id)
    request = _nothing(terms, answer)
    preflight(sql, request, lock=True)  # locks the branch, before the lease
    answer = find_answer(sql, tenant, run_id) or answer
    if answer.paused_at is not None:
        hold_lease(sql, tenant, answer)
    of_call = {call.call_id: call for call in decisions_of(sql, tenant, *answer.names) if call.call_id is not None}
    for call_id, (decision, reason) in resumption.decisions().items():
        earlier = of_call.get(call_id)
        if earlier is None and not answer.is_open:
            raise RunConflict(run_id, f"does not wait for call {call_id!r}: it has ended")
        if earlier is None:
            raise InvalidArgument(
                _ARGUMENTS[decision], f"names call {call_id!r}, for which run {run_id!r} does not wait"
            )
        _decide(sql, terms, answer, earlier, decision, reason, resumption.results.get(call_id))
    if answer.paused_at is None:
        return answer
    tip = preflight(sql, request, lock=True).tip
    still_open = set() if tip is None else {(call.branch, call.seq, call.idx) for call in tip.open_calls}
    undecided = [
        call for call in decisions_of(sql, tenant, *answer.names) if call.decision is None and call.place in still_open
    ]
    if undecided:
        return answer
    sql.execute(update(run_leases).where(lease_of(tenant, answer)).values(paused_at=null()))
    return replace(answer, paused_at=None)


def _decide(
    sql: WriteSql,
    terms: Terms,
    answer: StoredAnswer,
    earlier: Decision,
    decision: Decided,
    reason: str | None,
    result: ChatMessage | None,
) -> None:
    run_id, call_id = answer.run.run_id, earlier.call_id
    if earlier.decision is not None and earlier.decision != decision:
        raise RunConflict(run_id, f"call {call_id!r} is {_SHOWN[earlier.decision]} already")
    if earlier.decision is None:
        if answer.paused_at is None:
            raise RunConflict(run_id, f"does not wait for call {call_id!r}: it has ended, or goes on")
        if not earlier.exists or earlier.now != earlier.revision:
            raise RunConflict(run_id, f"the message of call {call_id!r} was revised or removed since the run paused")
    if decision == "refused" and earlier.decision is None:
        text = "The call was refused." if reason is None else f"The call was refused: {reason}"
        result = ChatMessage(role="tool", content=text, is_error=True)
    if result is not None and not (decision == "refused" and earlier.decision is not None):
        _append(sql, terms, answer, earlier, result)
    if earlier.decision is None:
        decided = {"decision": decision, "reason": reason, "author": terms.tenant.user_id}
        key = {"thread_id": answer.run.thread_id, "run_id": run_id, **dict(zip(_KEY, earlier.place, strict=True))}
        values = encrypt_values(terms.tenant, run_decisions, decided, **key)
        own = and_(*_of_run(terms.tenant, *answer.names), *_at(earlier.place))
        sql.execute(update(run_decisions).where(own).values(**values, decided_at=clock(sql)))


_SHOWN = {"approved": "approved", "refused": "refused", "result": "answered"}


def _append(sql: WriteSql, terms: Terms, answer: StoredAnswer, earlier: Decision, result: ChatMessage) -> None:
    """The result of a call. A repeat finds it by its key; other content is an IdConflict."""
    branch, seq, idx = earlier.place
    key = f"{answer.run.run_id}/{branch}/{seq}/{idx}"
    message = result.model_copy(update={"tool_call_id": earlier.call_id})
    request = make_request(
        terms, answer.run.thread_id, [message], run_id=answer.run.run_id, branch=answer.branch, idempotency_key=key
    )
    if answer.is_open:
        request = replace(request, fence=answer.fence)
    attempt_locked(sql, request)


def _nothing(terms: Terms, answer: StoredAnswer) -> AppendRequest:
    return make_request(terms, answer.run.thread_id, [], branch=answer.branch)


# --- Pauses that last too long ----------------------------------------------------------------------------------------
