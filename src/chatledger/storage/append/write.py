"""The write of an append: its plan as a guarded write.

The guard is `stamp`, never the version. A thread that was deleted and created again, or a restored backup, can bring
back the same version with other open calls. Activating another branch also gives the branch that was active a new stamp
(`repositories/branches.py`), so the guard holds for an append to "the active branch" as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from chatledger.models.json import dumps
from chatledger.rules import Judgement, Tip
from chatledger.storage.append import kv
from chatledger.storage.append.guarded_write import KEYS, TABLES, Guard, GuardedWrite, Step, write_by_table
from chatledger.storage.append.preflight import write_open_calls
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.errors import is_key, raise_run_conflict, run_conflict
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.rows.encrypted import UNLESS_ENCRYPTED
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import EncodedMessage
from chatledger.storage.schema.text import encode_json, encode_text

ACTIVITY_RESOLUTION = timedelta(seconds=1)
"""How stale a thread's `active_at` may be. Each update costs two index entries, so not every append makes one."""


@dataclass(frozen=True, slots=True)
class NewBranch:
    """The branch of an append that follows an earlier message: it has this lineage and replaces the active one.

    `source` is the branch whose path it shares. `left` is the branch that was active; it gets the stamp `left_stamp`,
    so that no append that was judged for "the active branch" is written to it. `absent` is the column.
    """

    lineage: str
    source: int
    left: int
    left_stamp: int
    absent: int | None


@dataclass(slots=True)
class Plan:
    """A judged append: the stamp that it was judged on, the new state of the branch, and the rows by table.

    With `new_branch`, `branch` is its number, and `stamp` is that of its source.

    `own` are the caller's rows; the request may also hold rows that the ledger inserted. `touches`: the thread's
    `active_at` may be stale. The rows of `runs` are created unless they exist. `run_end` has the parameters that end
    the run of the message that the append interrupts.
    """

    request: AppendRequest
    own: Sequence[EncodedMessage]
    branch: int
    stamp: int
    new_stamp: int
    touches: bool
    judgement: Judgement
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    new_branch: NewBranch | None = None
    run_end: Mapping[str, str] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it adds complete messages at the end of a branch, and writes nothing else than their runs."""
        return (
            self.new_branch is None
            and self.judgement.interrupted is None
            and self.judgement.tip.partial_seq is None
            and not self.request.kv
        )


@dataclass(slots=True)
class Written:
    """`touched`: the write set the thread's `active_at` to the time of the request."""

    touched: bool


class TryAgain:
    """Another writer changed the branch after the judgement, so nothing was written. The caller judges again."""


def plan_rows(
    request: AppendRequest, judgement: Judgement, branch: int, runs: Sequence[str] = ()
) -> Mapping[str, Sequence[tuple[Any, ...]]]:
    """The rows of each table in the order of its columns, without the key of the branch. If the tenant has keys, each
    plan encrypts its rows again.
    """
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    rows["runs"] = [(run, "running", request.now) for run in runs]
    for (message, seq, broken, call), (columns, parts, calls) in zip(judgement.messages, request.rows, strict=True):
        fields = message.__dict__
        violations = encode_json([violation.model_dump() for violation in broken]) if broken else None
        created_at = fields["created_at"] or request.now
        rows["messages"].append((*columns, seq, fields["state"], violations, created_at))
        if parts:
            rows["message_parts"] += [(seq, *part) for part in parts]
        if calls:
            rows["tool_calls"] += [(seq, *own) for own in calls]
        if call is not None:
            rows["tool_results"].append((seq, call.branch, call.seq, call.idx))
    if (encryption := request.tenant.encryption) is None:
        return rows
    key = (request.thread, branch)
    return {
        name: encryption.encrypt(name, TABLES[name], own, *key[: len(KEYS[name]) - 1]) for name, own in rows.items()
    }


def write(sql: WriteSql, plan: Plan, *, locked: bool = False) -> Written | TryAgain:
    """`locked`: a transaction holds the branch, and ends if this raises. Values of kv then get separate statements,
    which can report the stored version. On SQLite the guard can only fail if the caller judged on a tip from outside of
    the transaction. Raises VersionConflict and RunConflict.
    """
    apart = sql.by_table or locked
    try:
        written = _write_by_table(sql, plan) if sql.by_table else read_written(sql.fetch(*one_statement(plan, apart)))
    except Exception as error:
        _refuse_foreign_run(sql, plan.request, error)
        raise
    if apart and isinstance(written, Written):
        write_values(sql, plan.request)
    return written


def _write_by_table(sql: WriteSql, plan: Plan) -> Written | TryAgain:
    done = write_by_table(sql, guarded(plan))
    return TryAgain() if done is None else Written("touched" in done[0])


def write_values(sql: WriteSql, request: AppendRequest) -> None:
    """Write the values of kv that come with an append, in its transaction. Raises VersionConflict."""
    for one in request.kv:
        kv.put(sql, request.tenant, kv.of_thread(request.thread), one, request.now)


def one_statement(plan: Plan, apart: bool = False) -> tuple[str, dict[str, Any]]:
    """The append as one statement on PostgreSQL, for `read_written`. `apart`: without the values of kv."""
    write = guarded(plan)
    if apart or not plan.request.kv:
        return write.at_once(f"SELECT count(*), {touched(plan)} FROM tip")
    forms = kv.bind(plan.request.tenant, plan.request.thread, plan.request.kv, plan.request.now, write.parameters)
    write.guard = write.guard.on(kv.stored(forms))
    return write.at_once(f"SELECT {kv.moved(forms)}, {touched(plan)} FROM tip", kv.steps(forms))


def touched(plan: Plan) -> str:
    """The expression by which the one statement counts the threads that it touched."""
    return "(SELECT count(*) FROM touched)" if plan.touches else "0"


def read_written(rows: Sequence[Row]) -> Written | TryAgain:
    tips, touched = rows[0]
    return Written(bool(touched)) if tips else TryAgain()


def guarded(plan: Plan) -> GuardedWrite:
    """The write of the plan, without its values of kv."""
    now = plan.request.now
    guard, steps, parameters = tip_guard(plan.request.tenant), list[Step](), place_of(plan)
    parameters["now"] = now
    if (new := plan.new_branch) is not None:
        guard = NEW_BRANCH
        parameters |= {"lineage": new.lineage, "source": new.source, "absent": new.absent}
        parameters |= {"left": new.left, "left_stamp": new.left_stamp}
    if plan.touches:
        steps.append(TOUCH)
        parameters["stale"] = now - ACTIVITY_RESOLUTION
    if plan.judgement.interrupted is not None:
        steps.append(INTERRUPT)
        parameters["interrupted"] = plan.judgement.interrupted
    if plan.run_end is not None:
        steps.append(END_RUN)
        parameters |= plan.run_end
    return GuardedWrite(guard, steps, plan.rows, parameters)


def place_of(plan: Plan) -> dict[str, Any]:
    return {
        "tenant": plan.request.tenant.key,
        "thread": plan.request.thread,
        "branch": plan.branch,
        "stamp": plan.stamp,
        "new_stamp": plan.new_stamp,
        **tip_columns(plan.judgement.tip),
    }


def tip_columns(tip: Tip) -> dict[str, Any]:
    """The columns of a branch that hold its tip, for `UPDATE_TIP`."""
    waits = tip.open_calls or tip.answered or tip.partial_seq is not None  # for results, or for the end of a message
    return {
        "last_seq": tip.last_seq,
        "last_role": None if tip.last_role is None else encode_text(tip.last_role),
        "open_calls": write_open_calls(tip) if waits else None,
        "partial_seq": tip.partial_seq,
    }


# --- The guards and the steps -----------------------------------------------------------------------------------------

_KEY = "tenant_id = :tenant AND thread_id = :thread"
UPDATE_TIP = (
    "UPDATE {schema}branches SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role,"
    " open_calls = :open_calls, partial_seq = :partial_seq"
    f" WHERE {_KEY} AND branch = :branch AND stamp = :stamp"
)
TOUCH = Step(
    "touched", f"UPDATE {{schema}}threads SET active_at = :now WHERE {_KEY} AND active_at < :stale{{guard}} RETURNING 1"
)
INTERRUPT = Step(
    "interrupted",
    f"UPDATE {{schema}}messages SET state = 'interrupted'"
    f" WHERE {_KEY} AND branch = :branch AND seq = :interrupted{{guard}}",
)
END_RUN = Step(
    "ended",
    "UPDATE {schema}runs SET status = 'cancelled', error = :run_error, ended_at = :now"
    " WHERE tenant_id = :tenant AND run_id = :ended_run AND ended_at IS NULL{guard}",
)


def _tip_guard(unless: str) -> Guard:
    moved = f"{UPDATE_TIP}{unless} RETURNING 1"
    return Guard(f"WITH tip AS ({moved})", (moved,))


_WITH_KEYS, _WITHOUT_KEYS = _tip_guard(""), _tip_guard(UNLESS_ENCRYPTED)


def tip_guard(tenant: Tenant) -> Guard:
    """It compares the stamp. For a ledger without keys it also fails if the tenant or the database is encrypted."""
    return _WITHOUT_KEYS if tenant.encryption is None else _WITH_KEYS


# A new branch that replaces the active one. The guard compares the stamp of `source`. In one statement, its update of
# the branch that was active waits for any other writer that activates a branch, and `activated` sees whether one did:
# it locks branches and then the thread, in the order of an append. Where it runs alone, the preflight holds the locks.
_SOURCE = f"SELECT 1 FROM {{schema}}branches WHERE {_KEY} AND branch = :source AND stamp = :stamp"
_LEAVE = f"UPDATE {{schema}}branches SET stamp = :left_stamp WHERE {_KEY} AND branch = :left"
_ACTIVATE = (
    "UPDATE {schema}threads SET active_branch = :branch, active_at = CASE WHEN active_at < :now THEN :now"
    f" ELSE active_at END WHERE {_KEY} AND active_branch = :left"
)
_BRANCH_TYPES = {
    "tenant": "text",
    "thread": "text",
    "branch": "int",
    "lineage": "text",
    "last_seq": "bigint",
    "new_stamp": "bigint",
    "last_role": "text",
    "open_calls": "text",
    "partial_seq": "bigint",
    "now": "timestamptz",
    "absent": "bigint",
}
_INSERT_BRANCH = (
    "INSERT INTO {schema}branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, open_calls,"
    " partial_seq, created_at, absent)"
)
_GUARDED_BRANCH = f"{_INSERT_BRANCH} SELECT {', '.join(f':{name}::{type_}' for name, type_ in _BRANCH_TYPES.items())}"
NEW_BRANCH = Guard(
    f"WITH source AS ({_SOURCE} FOR UPDATE),\n"
    f"held AS ({_LEAVE} AND EXISTS (SELECT FROM source) RETURNING 1),\n"
    f"activated AS ({_ACTIVATE} AND EXISTS (SELECT FROM held) RETURNING 1),\n"
    f"tip AS ({_GUARDED_BRANCH} FROM activated RETURNING 1)",
    (
        _SOURCE,
        f"{_ACTIVATE} RETURNING 1",
        f"{_LEAVE} RETURNING 1",
        f"{_INSERT_BRANCH} VALUES ({', '.join(f':{name}' for name in _BRANCH_TYPES)}) RETURNING 1",
    ),
)


_FOREIGN_RUN = (
    "SELECT run_id FROM {schema}runs"
    " WHERE tenant_id = :tenant AND thread_id <> :thread AND run_id IN (SELECT value FROM json_each(:runs))"
)


def _refuse_foreign_run(sql: WriteSql, request: AppendRequest, error: Exception) -> None:
    """Raises RunConflict if that is why the write failed."""
    if sql.dialect == "postgresql":
        raise_run_conflict(error, request.runs)
    elif request.runs and is_key(error):  # SQLite does not say which foreign key failed
        place = {"tenant": request.tenant.key, "thread": request.thread, "runs": dumps(request.runs)}
        foreign = sql.fetch(_FOREIGN_RUN, place)
        if foreign:
            raise run_conflict(foreign[0][0]) from error
