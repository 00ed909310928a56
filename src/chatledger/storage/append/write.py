"""The guarded write: it updates the tip first, and writes the rest only if the tip still is the one that was judged.

The guard is `stamp`, never the version. A thread that was deleted and created again, or a restored backup, can bring
back the same version with other open calls. Activating another branch also gives the branch that was active a new stamp
(`repositories/branches.py`), so the guard holds for an append to "the active branch" as well. The write is one
statement on PostgreSQL. On SQLite, and on PostgreSQL whose tables are distributed by tenant, it is one statement for
each table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

from chatledger.models.json import dumps
from chatledger.rules import Judgement, Tip
from chatledger.storage.append import kv
from chatledger.storage.append.preflight import write_open_calls
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.run_end import END_RUN, RunEnd
from chatledger.storage.drivers.errors import foreign_run, is_key, run_conflict
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.rows.encrypted import unless_encrypted
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import (
    CALL_COLUMNS,
    GIVEN_COLUMNS,
    MESSAGE_COLUMNS,
    PART_COLUMNS,
    RESULT_COLUMNS,
    EncodedMessage,
)
from chatledger.storage.schema.text import encode_json, encode_text, to_microseconds

ACTIVITY_RESOLUTION = timedelta(seconds=1)
"""How stale a thread's `active_at` may be. Each update costs two index entries, so not every append makes one."""

# The types of the columns whose rows a statement on PostgreSQL makes, where they are not text.
TYPES = {
    "seq": "bigint",
    "idx": "int",
    "call_count": "int",
    "is_error": "boolean",
    "created_at": "timestamptz",
    "call_branch": "int",
    "call_seq": "bigint",
    "call_idx": "int",
}
KEY_COLUMNS = ("tenant_id", "thread_id", "branch")
TABLES = {
    "messages": MESSAGE_COLUMNS,
    "message_parts": PART_COLUMNS,
    "tool_calls": CALL_COLUMNS,
    "tool_results": RESULT_COLUMNS,
}


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
    `active_at` may be stale. `runs` are to be created unless they exist. `run_end` is that of the message that the
    append interrupts.
    """

    request: AppendRequest
    own: Sequence[EncodedMessage]
    branch: int
    stamp: int
    new_stamp: int
    touches: bool
    judgement: Judgement
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    runs: Sequence[str] = ()
    new_branch: NewBranch | None = None
    run_end: RunEnd | None = None

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


def plan_rows(request: AppendRequest, judgement: Judgement, branch: int) -> Mapping[str, Sequence[tuple[Any, ...]]]:
    """The rows of each table in the order of its columns, without (tenant, thread, branch). If the tenant has keys,
    each plan encrypts its rows again.
    """
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    for judged, encoded in zip(judgement.messages, request.rows, strict=True):
        message, seq = judged.message, judged.seq
        violations = [violation.model_dump() for violation in judged.violations] or None
        created_at = message.created_at or request.now
        rows["messages"].append((*encoded.message, seq, message.state, encode_json(violations), created_at))
        rows["message_parts"] += [(seq, *part) for part in encoded.parts]
        rows["tool_calls"] += [(seq, *call) for call in encoded.calls]
        if (call := judged.answers) is not None:
            rows["tool_results"].append((seq, call.branch, call.seq, call.idx))
    if (encryption := request.tenant.encryption) is None:
        return rows
    place = (request.thread, branch)
    return {name: encryption.encrypt(name, TABLES[name], own, *place) for name, own in rows.items()}


def write(sql: WriteSql, plan: Plan, *, locked: bool = False) -> Written | TryAgain:
    """`locked`: a transaction holds the branch, and ends if this raises. Values of kv then get separate statements,
    which can report the stored version. Raises VersionConflict.
    """
    if not sql.by_table and not (locked and plan.request.kv):
        return _write_at_once(sql, plan)
    alone = replace(plan, request=replace(plan.request, kv=())) if plan.request.kv else plan
    written = (_write_by_table if sql.by_table else _write_at_once)(sql, alone)
    if isinstance(written, Written):
        write_values(sql, plan.request)
    return written


def write_values(sql: WriteSql, request: AppendRequest) -> None:
    """Write the values of kv that come with an append, in its transaction. Raises VersionConflict."""
    for one in request.kv:
        kv.put(sql, request.tenant, kv.of_thread(request.thread), one, request.now)


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


# --- In one statement, on PostgreSQL ----------------------------------------------------------------------------------


def _write_at_once(sql: WriteSql, plan: Plan) -> Written | TryAgain:
    template, parameters = one_statement(plan)
    try:
        rows = sql.fetch(template, parameters)
    except Exception as error:
        raise_run_conflict([plan.request], error)
        raise
    return read_written(rows)


def one_statement(plan: Plan) -> tuple[str, dict[str, Any]]:
    """The whole append as one statement, for `read_written`."""
    filled, parameters = fill(plan)
    return _statement(filled), parameters


class Filled(NamedTuple):
    """The parts that a statement writes beside the tip. `interrupts`: it marks a partial message as interrupted.
    `ends`: it ends that message's run. `branches`: it makes a branch. `values` are those of kv. `unless` is the
    condition of a ledger without keys.
    """

    columns: tuple[Columns, ...]
    touches: bool
    runs: bool
    interrupts: bool
    ends: bool
    branches: bool
    values: kv.Forms
    unless: str


def fill(plan: Plan) -> tuple[Filled, dict[str, Any]]:
    """The parts that the statement writes, and its parameters."""
    parameters = place_of(plan)
    if plan.new_branch is not None:
        parameters |= _new_branch_columns(plan.new_branch) | {"now": plan.request.now}
    columns = tuple([columns_of(name, rows, parameters) for name, rows in plan.rows.items() if rows])
    if plan.touches or plan.runs:
        parameters["now"] = plan.request.now
    if plan.touches:
        parameters["stale"] = plan.request.now - ACTIVITY_RESOLUTION
    if plan.runs:
        parameters["runs"] = plan.runs
    if plan.judgement.interrupted is not None:
        parameters["interrupted"] = plan.judgement.interrupted
    forms: kv.Forms = ()
    if plan.request.kv:
        forms = kv.bind(plan.request.tenant, plan.request.thread, plan.request.kv, plan.request.now, parameters)
    if plan.run_end is not None:
        parameters |= plan.run_end.parameters | {"now": plan.request.now}
    interrupts, branches = plan.judgement.interrupted is not None, plan.new_branch is not None
    ends, runs = plan.run_end is not None, bool(plan.runs)
    unless = unless_encrypted(plan.request.tenant)
    return Filled(columns, plan.touches, runs, interrupts, ends, branches, forms, unless), parameters


def read_written(rows: Sequence[Row]) -> Written | TryAgain:
    tips, touched = rows[0]
    return Written(bool(touched)) if tips else TryAgain()


def raise_run_conflict(requests: Sequence[AppendRequest], error: Exception) -> None:
    """Raises RunConflict if that is what the error says."""
    foreign = foreign_run(error, [run for request in requests for run in request.runs])
    if foreign is not None:
        raise run_conflict(foreign) from error


class Columns(NamedTuple):
    """The columns of a table that a batch fills: `values` have one value for all rows, `varying` have one for each row.
    The latter come as an array for each column, or of a small batch of `cells` rows as a parameter for each cell.
    """

    table: str
    varying: tuple[str, ...]
    values: tuple[str, ...]
    cells: int


CELLS = 8
"""Maximum number of rows whose cells are parameters. The driver takes four times as long for the arrays of two rows as
for their cells. Each number of rows is a statement of its own, so larger batches come as arrays.
"""


def columns_of(
    table: str, rows: Sequence[tuple[Any, ...]], parameters: dict[str, Any], *, cells: bool = True
) -> Columns:
    """Adds the parameters. Most columns of most batches are NULL. The driver works through an array element by element,
    whatever it holds, so a column of equal values is sent as one value. With `cells`, a few rows are sent as cells.
    """
    varying, values = [], []
    count = len(rows) if cells and len(rows) <= CELLS else 0
    for (column, parameter, often_the_same, names), own in zip(
        _PARAMETERS[table], zip(*rows, strict=True), strict=True
    ):
        if often_the_same and own.count(own[0]) == len(own):
            if own[0] is not None:
                values.append(column)
                parameters[parameter] = own[0]
        else:
            varying.append(column)
            if count:
                parameters.update(zip(names, own, strict=False))
            else:
                parameters[parameter] = own
    return Columns(table, tuple(varying), tuple(values), count)


_OFTEN_THE_SAME = frozenset(GIVEN_COLUMNS) - {"message_id", "role", "text"} | {
    "state",
    "violations",
    "created_at",
    "extras",
    "body",
    "arguments_form",
    "call_branch",
}
_PARAMETERS = {
    table: [
        (column, f"{table}_{column}", column in _OFTEN_THE_SAME, [f"{table}_{column}_{row}" for row in range(CELLS)])
        for column in columns
    ]
    for table, columns in TABLES.items()
}


@lru_cache(maxsize=512)
def _statement(filled: Filled) -> str:
    """One chained statement. PostgreSQL checks its foreign keys at the end, so the order inside does not matter."""
    tip = _WITH_NEW_BRANCH if filled.branches else f"WITH tip AS ({UPDATE_TIP}{filled.unless} RETURNING 1)"
    touched = "(SELECT count(*) FROM touched)" if filled.touches else "0"
    return ",\n".join([tip, *parts_from_tip(filled)]) + f"\nSELECT {kv.moved(filled.values)}, {touched} FROM tip"


def parts_from_tip(filled: Filled) -> list[str]:
    """The parts of a chained statement that write only if its part `tip` wrote the tip."""
    parts = []
    if filled.touches:
        parts.append(f"touched AS ({TOUCH} AND EXISTS (SELECT FROM tip) RETURNING 1)")
    if filled.interrupts:
        parts.append(f"interrupted AS ({_INTERRUPT} AND EXISTS (SELECT FROM tip))")
    if filled.ends:
        parts.append(f"ended AS ({END_RUN} AND EXISTS (SELECT FROM tip))")
    if filled.runs:
        parts.append(f"run AS ({_insert_runs(TIP)})")
    parts += [f"{columns.table} AS ({insert_from(TIP, columns)})" for columns in filled.columns]
    return parts + kv.parts(filled.values)


_KEY = "tenant_id = :tenant AND thread_id = :thread"
UPDATE_TIP = (
    "UPDATE {schema}branches SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role,"
    " open_calls = :open_calls, partial_seq = :partial_seq"
    f" WHERE {_KEY} AND branch = :branch AND stamp = :stamp"
)
TOUCH = f"UPDATE {{schema}}threads SET active_at = :now WHERE {_KEY} AND active_at < :stale"
_INTERRUPT = (
    f"UPDATE {{schema}}messages SET state = 'interrupted' WHERE {_KEY} AND branch = :branch AND seq = :interrupted"
)


class Source(NamedTuple):
    """The row with which an INSERT joins its values, and the key of the branch as that row has it."""

    tenant: str
    thread: str
    branch: str
    row: str
    condition: str = ""


TIP = Source(":tenant::text", ":thread::text", ":branch::int", "tip")
"""The part `tip` of a chained statement, so that the INSERT writes only if the tip moved."""
STORED_TIP = Source(
    tenant="b.tenant_id",
    thread="b.thread_id",
    branch="b.branch",
    row="{schema}branches AS b",
    condition=" WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch = :branch",
)
"""The row of the branch, for a statement of its own. A distributed PostgreSQL sends an INSERT … SELECT to the server
that holds both tables' rows of one tenant; it would collect rows without a table at its coordinator first.
"""


def _insert_runs(source: Source) -> str:
    return (
        "INSERT INTO {schema}runs (tenant_id, run_id, thread_id, status, started_at)"
        f" SELECT {source.tenant}, r, {source.thread}, 'running', :now::timestamptz"
        f" FROM {source.row}, unnest(:runs::text[]) AS r{source.condition} ON CONFLICT DO NOTHING"
    )


# A new branch that replaces the active one. The statement compares the stamp of `source`. Its update of the branch that
# was active waits for any other writer that activates a branch, and `activated` sees whether one did. It locks branches
# and then the thread, in the order of an append.
_SOURCE = f"SELECT 1 FROM {{schema}}branches WHERE {_KEY} AND branch = :source AND stamp = :stamp"
_HOLD = (
    f"SELECT 1 FROM {{schema}}branches WHERE {_KEY} AND branch IN (:source::int, :left::int) ORDER BY branch FOR UPDATE"
)
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
_WITH_NEW_BRANCH = (
    f"WITH source AS ({_SOURCE} FOR UPDATE),\n"
    f"held AS ({_LEAVE} AND EXISTS (SELECT FROM source) RETURNING 1),\n"
    f"activated AS ({_ACTIVATE} AND EXISTS (SELECT FROM held) RETURNING 1),\n"
    f"tip AS ({_GUARDED_BRANCH} FROM activated RETURNING 1)"
)


def _new_branch_columns(new: NewBranch) -> dict[str, Any]:
    return {
        "lineage": new.lineage,
        "source": new.source,
        "left": new.left,
        "left_stamp": new.left_stamp,
        "absent": new.absent,
    }


@lru_cache(maxsize=512)
def insert_from(source: Source, columns: Columns) -> str:
    """An INSERT of rows on PostgreSQL, if the source has a row."""

    def parameter(column: str, name: str = "", array: str = "") -> str:
        return f":{columns.table}_{column}{name}::{TYPES.get(column, 'text')}{array}"

    names = ", ".join(("tenant_id", "thread_id", "branch", *columns.values, *columns.varying))
    values = "".join(f", {parameter(column)}" for column in columns.values)
    if columns.cells:
        rows = ", ".join(
            f"({', '.join(parameter(column, f'_{row}') for column in columns.varying)})" for row in range(columns.cells)
        )
        made = f"(VALUES {rows})"
    else:
        made = f"unnest({', '.join(parameter(column, array='[]') for column in columns.varying)})"
    return (
        f"INSERT INTO {{schema}}{columns.table} ({names})"
        f" SELECT {source.tenant}, {source.thread}, {source.branch}{values}, u.*"
        f" FROM {source.row}, {made} AS u{source.condition}"
    )


# --- In one statement for each table: on SQLite, and where the tables are distributed by tenant -----------------------


def _write_by_table(sql: WriteSql, plan: Plan) -> Written | TryAgain:
    """Inside a transaction, which ends if this raises. On SQLite the guard can only fail if the caller judged on a tip
    from outside of the transaction.
    """
    now = plan.request.now
    place = place_of(plan) | {"now": sql.moment(now), "stale": sql.moment(now - ACTIVITY_RESOLUTION)}
    if not (
        _make_branch(sql, plan.new_branch, place) if plan.new_branch else move_tip(sql, plan.request.tenant, place)
    ):
        return TryAgain()
    touched = sql.fetch(f"{TOUCH} RETURNING 1", place) if plan.touches else ()
    if plan.judgement.interrupted is not None:
        sql.fetch(_INTERRUPT, place | {"interrupted": plan.judgement.interrupted})
    if plan.run_end is not None:
        sql.fetch(END_RUN, place | plan.run_end.parameters)
    if plan.runs and sql.dialect == "postgresql":
        sql.fetch(_insert_runs(STORED_TIP), place | {"runs": plan.runs})
    elif plan.runs:
        sql.insert(SQLITE_RUNS, [place | {"run": run} for run in plan.runs])
    try:
        load_rows(sql, plan.rows, place)
    except Exception as error:
        if sql.dialect == "postgresql":
            raise_run_conflict([plan.request], error)
        elif plan.request.runs and is_key(error):  # SQLite does not say which foreign key failed
            foreign = sql.fetch(_FOREIGN_RUN, place | {"runs": dumps(plan.request.runs)})
            if foreign:
                raise run_conflict(foreign[0][0]) from error
        raise
    return Written(bool(touched))


def move_tip(sql: WriteSql, tenant: Tenant, place: Mapping[str, Any]) -> bool:
    """Whether the branch still has the stamp; then it has the new tip."""
    return bool(sql.fetch(f"{UPDATE_TIP}{unless_encrypted(tenant, distributed=sql.distributed)} RETURNING 1", place))


def _make_branch(sql: WriteSql, new: NewBranch, place: dict[str, Any]) -> bool:
    place = place | _new_branch_columns(new)
    if sql.dialect == "postgresql":
        sql.fetch(_HOLD, place)
    if not sql.fetch(_SOURCE, place) or not sql.fetch(f"{_ACTIVATE} RETURNING 1", place):
        return False
    sql.fetch(_LEAVE, place)
    sql.fetch(f"{_INSERT_BRANCH} VALUES ({', '.join(f':{name}' for name in _BRANCH_TYPES)})", place)
    return True


def load_rows(sql: WriteSql, rows_of: Mapping[str, Sequence[tuple[Any, ...]]], place: Mapping[str, Any]) -> None:
    """Insert the rows of a branch, with one statement for each table. `place` has its key."""
    same = {"tenant_id": place["tenant"], "thread_id": place["thread"], "branch": place["branch"]}
    for name, rows in rows_of.items():
        if rows and sql.dialect == "postgresql":
            parameters = {key: place[key] for key in ("tenant", "thread", "branch")}
            columns = columns_of(name, rows, parameters, cells=False)
            sql.fetch(insert_from(STORED_TIP, columns), parameters)
        elif rows:
            sql.load(name, *as_on_sqlite(TABLES[name], rows, same))


def as_on_sqlite(
    columns: Sequence[str], rows: Sequence[Row], same: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Sequence[str], Sequence[Row]]:
    """The columns and rows for SQLite: first the columns that are the `same` in all rows, then those that hold a value.
    A column that is left out is NULL and costs nothing. Moments become integers.
    """
    given = {
        column: _microseconds(own) if column.endswith("_at") else own
        for column, own in zip(columns, zip(*rows, strict=True), strict=True)
        if own[0] is not None or own.count(None) < len(own)
    }
    return [*same, *given], list(zip(*map(repeat, same.values()), *given.values(), strict=False))


def _microseconds(moments: Sequence[datetime]) -> Sequence[int]:
    """Converts each distinct moment once: the messages of an append, and often those of many threads, share theirs."""
    known = {moment: to_microseconds(moment) for moment in set(moments)}
    return [known[moment] for moment in moments]


SQLITE_RUNS = (
    "INSERT INTO {schema}runs (tenant_id, run_id, thread_id, status, started_at)"
    " VALUES (:tenant, :run, :thread, 'running', :now) ON CONFLICT DO NOTHING"
)

_FOREIGN_RUN = (
    "SELECT run_id FROM {schema}runs"
    " WHERE tenant_id = :tenant AND thread_id <> :thread AND run_id IN (SELECT value FROM json_each(:runs))"
)
