"""The rows of frames: messages, calls, runs and scores of a tenant, decoded and decrypted, a bounded number at a time.

A frame of messages or calls walks the threads in the order of their creation and reads intervals of the active
branches, of several threads with one statement. A frame of runs or scores walks the runs in the order of their ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, literal, select, tuple_

from chatledger.errors import ChatLedgerError
from chatledger.models import ChatMessage, Feedback, Run, ToolCall
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.history.path import Segment, cut, damaged_active_branch, read_lineage
from chatledger.storage.lists.pieces import Interval, fetch_pieces
from chatledger.storage.repositories.feedback import current_scores, select_scores
from chatledger.storage.rows.decode_messages import decode_each, is_damage
from chatledger.storage.rows.encryption import Tenant, damaged_cell
from chatledger.storage.rows.feedback import to_feedback
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS
from chatledger.storage.rows.owned import owned
from chatledger.storage.rows.runs import to_run
from chatledger.storage.schema.columns import Key, Moment, Undecoded
from chatledger.storage.schema.tables import branches, feedback, runs, threads
from chatledger.storage.schema.text import UNREADABLE, decode_text, encode_text, to_microseconds

THREADS = 500
"""The threads that one statement looks up."""
POSITIONS = 500
"""The positions that one statement reads: the most rows of a batch of messages."""
RUNS = 1_000

Note = Callable[[ChatLedgerError], None]
"""Takes the error of a row that cannot be read; it raises the error, or the row is left out."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rows a frame has. `agent` and `model` are those of the run."""

    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    agent: str | None = None

    def of_runs(self, tenant: Tenant) -> list[ColumnElement[bool]]:
        equal = {"model": self.model, "agent": self.agent}
        of_run = [runs.c[name] == value for name, value in equal.items() if value is not None]
        return [owned(runs, tenant), *of_run]

    def in_time(self, moment: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        conditions = [] if self.since is None else [moment >= self.since]
        return conditions if self.until is None else [*conditions, moment < self.until]


class OwnThread(NamedTuple):
    """A thread with the path of its active branch."""

    thread_id: str
    user_id: str | None
    segments: Sequence[Segment]
    last_seq: int


class MessageRow(NamedTuple):
    message: ChatMessage
    user_id: str | None
    agent: str | None
    model: str | None


class CallRow(NamedTuple):
    message: ChatMessage
    call_index: int
    call: ToolCall
    result: ChatMessage | None
    user_id: str | None
    agent: str | None
    model: str | None


class RunRow(NamedTuple):
    run: Run
    user_id: str | None


class ScoreRow(NamedTuple):
    score: Feedback
    run: RunRow


# --- Threads ----------------------------------------------------------------------------------------------------------

Place = tuple[datetime, str]
_OF_ACTIVE = and_(
    branches.c.tenant_id == threads.c.tenant_id,
    branches.c.thread_id == threads.c.thread_id,
    branches.c.branch == threads.c.active_branch,
)
_CREATED = (threads.c.created_at, threads.c.thread_id)
_THREAD = (*_CREATED, threads.c.user_id, threads.c.active_branch, branches.c.lineage, branches.c.last_seq)


def read_threads(
    sql: WriteSql, tenant: Tenant, chosen: Chosen, after: Place | None, note: Note
) -> tuple[list[OwnThread], Place | None]:
    """The next threads in the order of their creation, and the place of the last one; None if there are no more."""
    statement = select(*_THREAD).select_from(threads).outerjoin(branches, _OF_ACTIVE).where(owned(threads, tenant))
    if after is not None:
        statement = statement.where(tuple_(*_CREATED) > tuple_(literal(after[0], Moment()), literal(after[1], Key())))
    rows = sql.execute(statement.order_by(*_CREATED).limit(THREADS)).mappings().all()
    read: list[OwnThread] = []
    for row in rows:
        try:
            read.append(_to_thread(row))
        except ChatLedgerError as error:
            note_damage(error, note)
    if len(rows) < THREADS:
        return read, None
    return read, _readable_place(rows[-1])


def _readable_place(row: Any) -> Place:
    for column in _CREATED:
        if isinstance(row[column.name], Undecoded):
            raise damaged_cell(threads, column.name, dict(row))
    return row["created_at"], row["thread_id"]


def _to_thread(row: Any) -> OwnThread:
    thread_id, active = row["thread_id"], row["active_branch"]
    for name in ("thread_id", "user_id"):
        if isinstance(row[name], Undecoded):
            raise damaged_cell(threads, name, dict(row))
    if row["lineage"] is None:
        raise damaged_active_branch(thread_id)
    if type(row["last_seq"]) is not int:
        raise damaged_cell(branches, "last_seq", {"thread_id": thread_id, "branch": active})
    segments = cut(read_lineage(row["lineage"], thread_id, active), 1, row["last_seq"])
    return OwnThread(thread_id, row["user_id"], segments, row["last_seq"])


def note_damage(error: ChatLedgerError, note: Note) -> None:
    """Raises the error if it is about more than one row."""
    if not is_damage(error):
        raise error
    note(error)


class ThreadPiece(NamedTuple):
    thread: OwnThread
    segment: Segment


def batches_of(threads_read: Sequence[OwnThread]) -> Iterator[list[ThreadPiece]]:
    """The positions of the threads in order, at most POSITIONS in a batch."""
    batch: list[ThreadPiece] = []
    left = POSITIONS
    for thread in threads_read:
        for branch, first, last in thread.segments:
            while first <= last:
                end = min(last, first + left - 1)
                batch.append(ThreadPiece(thread, Segment(branch, first, end)))
                left -= end - first + 1
                first = end + 1
                if left == 0:
                    yield batch
                    batch, left = [], POSITIONS
    if batch:
        yield batch


# --- Messages and calls -----------------------------------------------------------------------------------------------

_OF_RUN = "LEFT JOIN {schema}runs x ON x.tenant_id = :tenant AND x.run_id = r.run_id "


def read_messages(
    sql: WriteSql, tenant: Tenant, chosen: Chosen, batch: Sequence[ThreadPiece], note: Note
) -> list[MessageRow]:
    """The messages of a batch, thread by thread in the order of seq."""
    return list(_read(sql, tenant, chosen, batch, note))


def read_calls(
    sql: WriteSql, tenant: Tenant, chosen: Chosen, batch: Sequence[ThreadPiece], note: Note
) -> list[CallRow]:
    """The calls of a batch, each with the result that answers it on the active branch."""
    calling = list(_read(sql, tenant, chosen, batch, note, condition="r.call_count > 0"))
    results = _read_results(sql, tenant, batch, note) if calling else {}
    return [
        CallRow(message, index, call, results.get((message.thread_id, message.branch, message.seq, index)), *of_run)
        for message, *of_run in calling
        for index, call in enumerate(message.tool_calls or ())
    ]


def _read(
    sql: WriteSql,
    tenant: Tenant,
    chosen: Chosen,
    batch: Sequence[ThreadPiece],
    note: Note,
    condition: str | None = None,
) -> Iterator[MessageRow]:
    conditions, parameters = _conditions(sql, chosen)
    if condition is not None:
        conditions.append(condition)
    rest = _OF_RUN + (f"WHERE {' AND '.join(conditions)}" if conditions else "")
    pieces = [Interval(encode_text(thread.thread_id), *segment) for thread, segment in batch]
    columns = ("x.agent", "x.model", "thread_id", "branch", *MESSAGE_COLUMNS)
    rows = fetch_pieces(sql, tenant, "messages", columns, pieces, rest, parameters)
    names = {(row[2], row[3], row[_SEQ + 3]): row[:2] for row in rows}
    decoded = _decode(sql, tenant, pieces, [row[2:] for row in rows], note)
    for key, thread in {encode_text(thread.thread_id): thread for thread, _ in batch}.items():
        for message in decoded.get(key, ()):
            try:
                agent, model = map(_word, names[key, message.branch, message.seq])
            except UNREADABLE:
                note(damaged_cell(runs, "agent or model", {"run_id": message.run_id}))
            else:
                yield MessageRow(message, thread.user_id, agent, model)


def _word(stored: str | None) -> str | None:
    return None if stored is None else decode_text(stored)


_SEQ = MESSAGE_COLUMNS.index("seq") + 1
_FORMS = [2 + MESSAGE_COLUMNS.index(name) for name in ("content_form", "reasoning_form", "call_count")]


def _conditions(sql: WriteSql, chosen: Chosen) -> tuple[list[str], dict[str, Any]]:
    parameters: dict[str, Any] = {}
    conditions: list[str] = []
    for name, comparison in (("since", ">="), ("until", "<")):
        moment = getattr(chosen, name)
        if moment is not None:
            parameters[name] = moment if sql.dialect == "postgresql" else to_microseconds(moment)
            conditions.append(f"r.created_at {comparison} :{name}")
    for name in ("model", "agent"):
        value = getattr(chosen, name)
        if value is not None:
            parameters[name] = encode_text(value)
            conditions.append(f"x.{name} = :{name}")
    return conditions, parameters


def _decode(
    sql: WriteSql, tenant: Tenant, pieces: Sequence[Interval], rows: Sequence[Row], note: Note
) -> dict[str, list[ChatMessage]]:
    """The messages of the rows (thread_id, branch, *MESSAGE_COLUMNS) by thread, in the order of seq."""
    forms = [tuple(row[place] for place in _FORMS) for row in rows]
    parts: Sequence[Row] = ()
    calls: Sequence[Row] = ()
    if any(content == "parts" or reasoning is not None for content, reasoning, _ in forms):
        parts = fetch_pieces(sql, tenant, "message_parts", ("thread_id", "branch", *PART_COLUMNS), pieces)
    if any(count for *_, count in forms):
        calls = fetch_pieces(sql, tenant, "tool_calls", ("thread_id", "branch", *CALL_COLUMNS), pieces)
    of_thread = [_by_thread(table, 3) for table in (parts, calls)]
    messages_of: dict[str, list[ChatMessage]] = {}
    for key, own in _by_thread(rows, _SEQ).items():
        read = decode_each(tenant, decode_text(key), own, *(table.get(key, []) for table in of_thread))
        messages_of[key] = []
        for *_, message in read:
            if isinstance(message, ChatMessage):
                messages_of[key].append(message)
            else:
                note_damage(message, note)
    return messages_of


def _by_thread(rows: Sequence[Row], place: int) -> dict[str, list[Row]]:
    """The rows without their thread, in the order of the column at `place` and the one before it."""
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rows_of[row[0]].append(row[1:])
    for own in rows_of.values():
        own.sort(key=lambda row: (row[place - 2], row[place - 1]) if place == 3 else row[place])
    return rows_of


_RESULT = ("thread_id", "call_branch", "call_seq", "call_idx", "branch", "seq")


def _read_results(
    sql: WriteSql, tenant: Tenant, batch: Sequence[ThreadPiece], note: Note
) -> dict[tuple[str | None, int | None, int | None, int], ChatMessage]:
    """The results of the calls of a batch on the active branches, by thread, branch, seq and index of the call."""
    places: dict[tuple[str, int, int], tuple[str | None, int, int, int]] = {}
    own = {encode_text(thread.thread_id): thread for thread, _ in batch}
    calling = [Interval(encode_text(thread.thread_id), *segment) for thread, segment in batch]
    for row in fetch_pieces(sql, tenant, "tool_results", _RESULT, calling, place=("call_branch", "call_seq")):
        thread = own[row[0]]
        if any(segment.branch == row[4] and segment.first <= row[5] <= segment.last for segment in thread.segments):
            places[row[0], row[4], row[5]] = (thread.thread_id, *row[1:4])
    if not places:
        return {}
    pieces = [Interval(thread, branch, seq, seq) for thread, branch, seq in places]
    rows = fetch_pieces(sql, tenant, "messages", ("thread_id", "branch", *MESSAGE_COLUMNS), pieces)
    return {
        places[key, message.branch or 0, message.seq or 0]: message
        for key, messages in _decode(sql, tenant, pieces, rows, note).items()
        for message in messages
    }


# --- Runs and scores --------------------------------------------------------------------------------------------------


def read_runs(
    sql: WriteSql, tenant: Tenant, chosen: Chosen, after: str | None, note: Note, *, timed: bool
) -> tuple[list[RunRow], str | None]:
    """The next runs in the order of their ids, and the id of the last one; None if there are no more. `timed`: only
    those that started in the chosen time.
    """
    own = and_(threads.c.tenant_id == runs.c.tenant_id, threads.c.thread_id == runs.c.thread_id)
    conditions = [*chosen.of_runs(tenant), *(chosen.in_time(runs.c.started_at) if timed else ())]
    if after is not None:
        conditions.append(runs.c.run_id > after)
    statement = select(runs, threads.c.user_id.label("owner")).join(threads, own).where(*conditions)
    rows = sql.execute(statement.order_by(runs.c.run_id).limit(RUNS)).mappings().all()
    read: list[RunRow] = []
    for row in rows:
        try:
            read.append(_to_run(tenant, row))
        except ChatLedgerError as error:
            note_damage(error, note)
    if len(rows) < RUNS:
        return read, None
    if isinstance(rows[-1]["run_id"], Undecoded):
        raise damaged_cell(runs, "run_id", {})
    return read, rows[-1]["run_id"]


def _to_run(tenant: Tenant, row: Any) -> RunRow:
    if isinstance(row["owner"], Undecoded):
        raise damaged_cell(threads, "user_id", {"thread_id": row["thread_id"]})
    return RunRow(to_run(tenant, {column.name: row[column.name] for column in runs.c}), row["owner"])


def read_scores(sql: WriteSql, tenant: Tenant, chosen: Chosen, of: Sequence[RunRow], note: Note) -> list[ScoreRow]:
    """The scores of these runs that count, in the order of the runs and of time."""
    by_id = {row.run.run_id: row for row in of}
    scores = current_scores(feedback.c.tenant_id == tenant.name, feedback.c.run_id.in_(list(by_id)))
    ordered = select_scores(scores, tenant).where(*chosen.in_time(scores.c.created_at))
    ordered = ordered.order_by(scores.c.run_id, scores.c.created_at, scores.c.feedback_id)
    scored: list[ScoreRow] = []
    for row in sql.execute(ordered).mappings():
        try:
            score = to_feedback(tenant, row)
        except ChatLedgerError as error:
            note_damage(error, note)
        else:
            scored.append(ScoreRow(score, by_id[score.run_id]))
    return scored
