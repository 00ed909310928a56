"""Frames: messages, calls, runs and scores as Arrow record batches, for data frames, DuckDB and Parquet files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from chatledger.arguments import FUNCTION_OR_NONE, STR_OR_NONE, require
from chatledger.errors import ChatLedgerError, MissingExtra, StorageError
from chatledger.models.base import read_moment
from chatledger.models.json import dumps
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.frame_rows import (
    POSITIONS,
    CallRow,
    Chosen,
    MessageRow,
    Note,
    Place,
    RunRow,
    ScoreRow,
    ThreadPiece,
    batches_of,
    read_calls,
    read_messages,
    read_runs,
    read_scores,
    read_threads,
)
from chatledger.storage.rows.encryption import Tenant

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


class _Read(Protocol):
    def __call__(
        self, sql: Sql, tenant: Tenant, chosen: Chosen, batch: Sequence[ThreadPiece], note: Note
    ) -> Sequence[Any]: ...


class FrameRepository:
    """Each call returns an async iterator of `pyarrow.RecordBatch`, which needs the extra `frames`.

    All four take the same filters, and a row fits each given one. `since` and `until` are
    about the time of the message, of the message with the call, of the start of the run, or of the score; a row at
    `since` is included, one at `until` is not. `agent` and `model` are those of the run, so a message without
    a run fits neither. Texts are decrypted where the ledger has keys.

    A batch has at most 1,000 rows, and memory holds one batch. Each batch is read by itself, and is a consistent state;
    rows that are written meanwhile may be in a later batch. A row that cannot be read is passed to `on_damage` as its
    error, and left out. Without `on_damage` the error is raised.

    The types of columns are the same in every batch, and columns are added at the end only. Times are timestamps in UTC
    with microseconds, JSON is text, and half of a surrogate pair, which Arrow cannot hold, becomes U+FFFD.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def messages(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """The messages of the active branch of each thread, in the order of the threads' creation and of seq.

        Columns: `thread_id`, `user_id` (the owner of the thread), `seq`, `branch` (which stores the message),
        `message_id`, `role`, `name`, `text` (all text parts, joined), `reasoning` (as text), `content` (JSON of the
        parts, if the content is a list), `tool_names` (a list), `tool_call_id`, `is_error`, `run_id`, `agent`, `model`,
        `state` and `created_at`.
        """
        chosen, note = self._chosen(since, until, model, agent, on_damage)
        to_batch = _batch_maker("messages")
        return self._of_threads(chosen, note, read_messages, to_batch)

    def calls(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """The tool calls of the active branch of each thread, each with the result that answers it there, in the order
        of `messages`.

        Columns: `thread_id`, `user_id`, `seq` and `branch` of the message, `message_id`, `call_index`, `call_id`,
        `name`, `arguments` (text, as it came, or JSON of an object), `result_seq` (null: the call is open), `result`
        (text), `is_error`, `run_id`, `agent`, `model`, `called_at` and `answered_at`.
        """
        chosen, note = self._chosen(since, until, model, agent, on_damage)
        to_batch = _batch_maker("calls")
        return self._of_threads(chosen, note, read_calls, to_batch)

    def runs(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """The runs, in the order of their ids.

        Columns: `run_id`, `thread_id`, `user_id` (the owner of the thread), `agent`, `model`, `status`, `input_tokens`,
        `output_tokens`, `total_tokens`, `details` (JSON of the usage), `cost` (a decimal with 12 digits behind the
        point, rounded), `input` (JSON), `error`, `metadata` (JSON), `started_at` and `ended_at`.
        """
        chosen, note = self._chosen(since, until, model, agent, on_damage)
        return self._runs(chosen, note, _batch_maker("runs"))

    def scores(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        model: str | None = None,
        agent: str | None = None,
        on_damage: Callable[[ChatLedgerError], object] | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """The scores that count (as `feedback.list`), in the order of the runs' ids and of time.

        Columns: `feedback_id`, `run_id`, `thread_id`, `owner_id` (of the thread), `agent`, `model`, `key`, `score`,
        `author`, `source`, `message_id`, `call_index`, `user_id` (whose score it is), `kwargs` (JSON) and
        `created_at`.
        """
        chosen, note = self._chosen(since, until, model, agent, on_damage)
        return self._scores(chosen, note, _batch_maker("scores"))

    def _chosen(
        self,
        since: datetime | None,
        until: datetime | None,
        model: str | None,
        agent: str | None,
        on_damage: Callable[[ChatLedgerError], object] | None,
    ) -> tuple[Chosen, Note]:
        require(STR_OR_NONE, model=model, agent=agent)
        require(FUNCTION_OR_NONE, on_damage=on_damage)
        chosen = Chosen(read_moment("since", since), read_moment("until", until), model, agent)
        return chosen, _raise if on_damage is None else on_damage  # type: ignore[return-value]

    async def _of_threads(
        self, chosen: Chosen, note: Note, read: _Read, to_batch: Callable[[Sequence[Any]], Any]
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        place: Place | None = None
        while True:
            noted: list[ChatLedgerError] = []
            look_up = partial(read_threads, chosen=chosen, after=place, note=noted.append)
            found, place = await self._read(look_up, noted, note)
            for batch in batches_of(found):
                rows = await self._read(partial(read, chosen=chosen, batch=batch, note=noted.append), noted, note)
                for start in range(0, len(rows), POSITIONS):  # a message may have many calls
                    yield to_batch(rows[start : start + POSITIONS])
            if place is None:
                return

    async def _runs(
        self, chosen: Chosen, note: Note, to_batch: Callable[[Sequence[Any]], Any]
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        async for rows in self._run_pages(chosen, note, timed=True):
            yield to_batch(rows)

    async def _scores(
        self, chosen: Chosen, note: Note, to_batch: Callable[[Sequence[Any]], Any]
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        async for rows in self._run_pages(chosen, note, timed=False):
            noted: list[ChatLedgerError] = []
            scores = await self._read(partial(read_scores, chosen=chosen, of=rows, note=noted.append), noted, note)
            for start in range(0, len(scores), POSITIONS):
                yield to_batch(scores[start : start + POSITIONS])

    async def _run_pages(self, chosen: Chosen, note: Note, *, timed: bool) -> AsyncIterator[Sequence[RunRow]]:
        after: str | None = None
        while True:
            noted: list[ChatLedgerError] = []
            look_up = partial(read_runs, chosen=chosen, after=after, note=noted.append, timed=timed)
            rows, after = await self._read(look_up, noted, note)
            if rows:
                yield rows
            if after is None:
                return

    async def _read(self, work: Callable[[Sql, Tenant], T], noted: list[ChatLedgerError], note: Note) -> T:
        """One read in one state of the database. The errors of rows are told here, in the caller's task."""

        def again(sql: Sql) -> T:
            noted.clear()  # a read whose connection was lost is repeated
            return work(sql, self._scope.tenant)

        found = await self._scope.read(again, snapshot=True)
        for error in noted:
            note(error)
        return found


def _raise(error: ChatLedgerError) -> None:
    raise error


# --- Arrow ------------------------------------------------------------------------------------------------------------

_SCHEMAS = {
    "messages": {
        "thread_id": "text!", "user_id": "text", "seq": "int64!", "branch": "int32!", "message_id": "text",
        "role": "text!", "name": "text", "text": "text", "reasoning": "text", "content": "text", "tool_names": "texts",
        "tool_call_id": "text", "is_error": "bool", "run_id": "text", "agent": "text", "model": "text",
        "state": "text!", "created_at": "time!",
    },
    "calls": {
        "thread_id": "text!", "user_id": "text", "seq": "int64!", "branch": "int32!", "message_id": "text",
        "call_index": "int32!", "call_id": "text", "name": "text!", "arguments": "text", "result_seq": "int64",
        "result": "text", "is_error": "bool", "run_id": "text", "agent": "text", "model": "text", "called_at": "time!",
        "answered_at": "time",
    },
    "runs": {
        "run_id": "text!", "thread_id": "text!", "user_id": "text", "agent": "text", "model": "text",
        "status": "text!", "input_tokens": "int64", "output_tokens": "int64", "total_tokens": "int64",
        "details": "text", "cost": "cost", "input": "text", "error": "text", "metadata": "text", "started_at": "time!",
        "ended_at": "time",
    },
    "scores": {
        "feedback_id": "text!", "run_id": "text!", "thread_id": "text!", "owner_id": "text", "agent": "text",
        "model": "text", "key": "text!", "score": "real!", "author": "text", "source": "text", "message_id": "text",
        "call_index": "int32", "user_id": "text", "kwargs": "text!", "created_at": "time!",
    },
}  # fmt: skip
"""The columns of each frame by type; `!`: never null."""
COST_DIGITS = 12
_COST = Context(prec=38)
_STEP = Decimal(1).scaleb(-COST_DIGITS)


def frame_schema(name: str) -> pyarrow.Schema:
    """The Arrow schema of a frame: messages, calls, runs or scores. Raises MissingExtra."""
    pa = _pyarrow()
    types = {
        "text": pa.string(),
        "texts": pa.list_(pa.string()),
        "int64": pa.int64(),
        "int32": pa.int32(),
        "bool": pa.bool_(),
        "real": pa.float64(),
        "cost": pa.decimal128(38, COST_DIGITS),
        "time": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        pa.field(column, types[kind.rstrip("!")], nullable=not kind.endswith("!"))
        for column, kind in _SCHEMAS[name].items()
    )


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise MissingExtra("frames", "an Arrow frame") from None
    return pyarrow


def _batch_maker(name: str) -> Callable[[Sequence[Any]], pyarrow.RecordBatch]:
    schema, pa = frame_schema(name), _pyarrow()
    cells: Callable[[Any], tuple[Any, ...]] = _CELLS[name]

    def to_batch(rows: Sequence[Any]) -> pyarrow.RecordBatch:
        columns = zip(*map(cells, rows), strict=True) if rows else [() for _ in schema]
        arrays = [_array(pa, column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return to_batch


def _array(pa: Any, column: Sequence[Any], type_: Any) -> Any:
    try:
        return pa.array(column, type_)
    except UnicodeEncodeError:
        return pa.array([_whole(cell) for cell in column], type_)


def _whole(cell: Any) -> Any:
    """The text without halves of surrogate pairs, which UTF-8 cannot express."""
    if isinstance(cell, list):
        return [_whole(one) for one in cell]
    if isinstance(cell, str):
        return cell.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return cell


def _message_cells(row: MessageRow) -> tuple[Any, ...]:
    message = row.message
    content = message.content
    return (
        message.thread_id, row.user_id, message.seq, message.branch, message.message_id, message.role, message.name,
        None if content is None else message.text,
        message.reasoning_text or None,
        _parts_json(content) if isinstance(content, list) else None,
        None if message.tool_calls is None else [call.name for call in message.tool_calls],
        message.tool_call_id, message.is_error, message.run_id, row.agent, row.model, message.state,
        message.created_at,
    )  # fmt: skip


def _parts_json(parts: Iterable[Any]) -> str:
    return dumps([part.model_dump(exclude_none=True) for part in parts])


def _call_cells(row: CallRow) -> tuple[Any, ...]:
    message, call, result = row.message, row.call, row.result
    arguments = call.arguments if call.arguments is None or isinstance(call.arguments, str) else dumps(call.arguments)
    answered = (None, None, None, None)
    if result is not None:
        text = None if result.content is None else result.text
        answered = (result.seq, text, result.is_error, result.created_at)  # type: ignore[assignment]
    return (
        message.thread_id, row.user_id, message.seq, message.branch, message.message_id, row.call_index, call.id,
        call.name, arguments, *answered[:3], message.run_id, row.agent, row.model, message.created_at, answered[3],
    )  # fmt: skip


def _run_cells(row: RunRow) -> tuple[Any, ...]:
    run, usage = row.run, row.run.usage
    counted = (None, None, None, None, None)
    if usage is not None:
        details = _json(usage.details)
        counted = (usage.input_tokens, usage.output_tokens, usage.total_tokens, details, _cost(run.run_id, usage.cost))  # type: ignore[assignment]
    return (
        run.run_id, run.thread_id, row.user_id, run.agent, run.model, run.status, *counted, _json(run.input), run.error,
        _json(run.metadata), run.started_at, run.ended_at,
    )  # fmt: skip


def _json(value: Any) -> str | None:
    return None if value is None else dumps(value)


def _cost(run_id: str, cost: Decimal | None) -> Decimal | None:
    if cost is None:
        return None
    try:
        return cost.quantize(_STEP, context=_COST)
    except InvalidOperation:
        raise StorageError(f"the cost of run {run_id!r} has more than 26 digits, which no frame can hold") from None


def _score_cells(row: ScoreRow) -> tuple[Any, ...]:
    score, (run, owner) = row.score, row.run
    return (
        score.feedback_id, score.run_id, run.thread_id, owner, run.agent, run.model, score.key, score.score,
        score.author, score.source, score.message_id, score.call_index, score.user_id, dumps(score.kwargs),
        score.created_at,
    )  # fmt: skip


_CELLS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "messages": _message_cells,
    "calls": _call_cells,
    "runs": _run_cells,
    "scores": _score_cells,
}
