"""Frames: messages, calls, runs and scores as Arrow record batches, for data frames, DuckDB and Parquet files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from chatledger.errors import ChatLedgerError, MissingExtra, StorageError
from chatledger.models import FrameTable
from chatledger.models.json import dumps
from chatledger.reports.frame_rows import (
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
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


class _ReadFrame(Protocol):
    def __call__(
        self, sql: WriteSql, tenant: Tenant, chosen: Chosen, batch: Sequence[ThreadPiece], note: Note
    ) -> Sequence[Any]: ...


def read_frames(
    scope: Scope,
    table: FrameTable,
    chosen: tuple[datetime | None, datetime | None, str | None, str | None],
    on_damage: Callable[[ChatLedgerError], object] | None,
) -> AsyncIterator[pyarrow.RecordBatch]:
    """`chosen` has since, until, model and agent. Raises MissingExtra."""
    reader = _FrameReader(scope, Chosen(*chosen), _raise if on_damage is None else on_damage)
    return reader.read(table, _batch_maker(table))


@dataclass(frozen=True, slots=True)
class _FrameReader:
    scope: Scope
    chosen: Chosen
    note: Callable[[ChatLedgerError], object]

    def read(
        self, table: FrameTable, to_batch: Callable[[Sequence[Any]], pyarrow.RecordBatch]
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        if table == "runs":
            return self._runs(to_batch)
        if table == "scores":
            return self._scores(to_batch)
        return self._of_threads(read_messages if table == "messages" else read_calls, to_batch)

    async def _of_threads(
        self, read: _ReadFrame, to_batch: Callable[[Sequence[Any]], Any]
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        place: Place | None = None
        while True:
            noted: list[ChatLedgerError] = []
            look_up = partial(read_threads, chosen=self.chosen, after=place, note=noted.append)
            threads, place = await self._read(look_up, noted)
            for batch in batches_of(threads):
                rows = await self._read(partial(read, chosen=self.chosen, batch=batch, note=noted.append), noted)
                for start in range(0, len(rows), POSITIONS):  # a message may have many calls
                    yield to_batch(rows[start : start + POSITIONS])
            if place is None:
                return

    async def _runs(self, to_batch: Callable[[Sequence[Any]], Any]) -> AsyncIterator[pyarrow.RecordBatch]:
        async for rows in self._run_pages(timed=True):
            yield to_batch(rows)

    async def _scores(self, to_batch: Callable[[Sequence[Any]], Any]) -> AsyncIterator[pyarrow.RecordBatch]:
        async for rows in self._run_pages(timed=False):
            noted: list[ChatLedgerError] = []
            scores = await self._read(partial(read_scores, chosen=self.chosen, of=rows, note=noted.append), noted)
            for start in range(0, len(scores), POSITIONS):
                yield to_batch(scores[start : start + POSITIONS])

    async def _run_pages(self, *, timed: bool) -> AsyncIterator[Sequence[RunRow]]:
        after: str | None = None
        while True:
            noted: list[ChatLedgerError] = []
            look_up = partial(read_runs, chosen=self.chosen, after=after, note=noted.append, timed=timed)
            rows, after = await self._read(look_up, noted)
            if rows:
                yield rows
            if after is None:
                return

    async def _read(self, work: Callable[[ReadSql, Tenant], T], noted: list[ChatLedgerError]) -> T:
        """One read in one state of the database. The errors of rows are told here, in the caller's task."""

        def again(sql: ReadSql) -> T:
            noted.clear()  # a read whose connection was lost is repeated
            return work(sql, self.scope.tenant)

        result = await self.scope.read(again, snapshot=True)
        for error in noted:
            self.note(error)
        return result


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
        return [_whole(element) for element in cell]
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
