"""A guarded write: its guard moves the tip of a branch, and the rest is written only if the tip moved.

This is the one way to write to a branch. A write is a guard, steps, and rows by table. On PostgreSQL all of it is one
statement. On SQLite, and where the tables are distributed by tenant, each part is a statement of its own in a
transaction, and the write ends at a guard that finds another tip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from chatledger.storage.drivers.sql import CELLS, Row, WriteSql
from chatledger.storage.rows.messages import (
    CALL_COLUMNS,
    GIVEN_COLUMNS,
    MESSAGE_COLUMNS,
    PART_COLUMNS,
    RESULT_COLUMNS,
)
from chatledger.storage.schema.text import CLOCK, to_microseconds

TABLES: Mapping[str, tuple[str, ...]] = {
    "runs": ("run_id", "status", "started_at"),
    "messages": MESSAGE_COLUMNS,
    "message_parts": PART_COLUMNS,
    "tool_calls": CALL_COLUMNS,
    "tool_results": RESULT_COLUMNS,
}
"""The columns of the rows of each table that an append fills, without the key of the branch. A message refers to its
run, so runs come first.
"""
KEYS = {table: ("tenant_id", "thread_id", *(() if table == "runs" else ("branch",))) for table in TABLES}
"""The columns that stand before them."""

# The types of the columns whose rows a statement on PostgreSQL makes, where they are not text.
_TYPES = {
    "branch": "int",
    "seq": "bigint",
    "idx": "int",
    "call_count": "int",
    "is_error": "boolean",
    "created_at": "timestamptz",
    "started_at": "timestamptz",
    "call_branch": "int",
    "call_seq": "bigint",
    "call_idx": "int",
}


class Guard(NamedTuple):
    """What moves the tip. `chain` begins one statement; its last part, `tip`, has a row if the tip moved. `alone` are
    the same statements one by one: each returns a row, or nothing was written.
    """

    chain: str
    alone: tuple[str, ...]

    def on(self, condition: str) -> Guard:
        """The chain with one more condition, in the first part that changes a row, on which all others depend."""
        return Guard(self.chain.replace(" RETURNING 1", f"{condition} RETURNING 1", 1), self.alone)


UNGUARDED = Guard("", ())
"""For a write of rows whose thread the transaction holds. It is no one statement."""


class Step(NamedTuple):
    """An UPDATE or a DELETE. In one statement its part has this name, and `{guard}` in the text becomes the condition
    that the tip moved.
    """

    name: str
    text: str


class Columns(NamedTuple):
    """The columns of a table that a batch fills: `values` have one value for all rows, `varying` have one for each row,
    which come as an array for each column.
    """

    table: str
    varying: tuple[str, ...]
    values: tuple[str, ...]
    conflict: str


class Cells(NamedTuple):
    """A few rows of a table, with a parameter for each cell, by its position: see `prepare`."""

    table: str
    rows: int
    conflict: str


class Source(NamedTuple):
    """The row with which an INSERT joins its values, and the key of the branch as that row has it. `numbered`: the
    source has several rows, and each value has the number of its own.
    """

    key: tuple[str, str, str]
    row: str
    condition: str = ""
    numbered: bool = False


_OF_PARAMETERS = (":tenant::text", ":thread::text", ":branch::int")
_TIP = Source(_OF_PARAMETERS, "tip")
"""The part `tip` of one statement, so that the INSERT writes only if the tip moved."""
_STORED_TIP = Source(
    ("b.tenant_id", "b.thread_id", "b.branch"),
    "{schema}branches AS b",
    " WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch = :branch",
)
"""The row of the branch, for a statement of its own. A distributed PostgreSQL sends an INSERT … SELECT to the server
that holds both tables' rows of one tenant; it would collect rows without a table at its coordinator first.
"""


@dataclass(slots=True)
class GuardedWrite:
    """`parameters` are those of the guard and the steps. With `overwrites`, rows of parts and calls may be stored."""

    guard: Guard
    steps: Sequence[Step]
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    parameters: dict[str, Any]
    overwrites: bool = False

    def at_once(self, answer: str, more: Iterable[Step] = ()) -> tuple[str, dict[str, Any]]:
        """The write as one statement on PostgreSQL, with the steps of `more` at its end. `answer` is its SELECT."""
        self.parameters[CELLS] = cells = list[Any]()
        own = [self.shape(table, rows, cells) for table, rows in self.rows.items() if rows]
        return chain(self._timed(self.guard.chain), (*self.steps, *own, *more), answer), self.parameters

    def shape(self, table: str, rows: Sequence[tuple[Any, ...]], cells: list[Any]) -> Cells | Columns:
        """How the rows are sent: of a few, it adds the cells, and of many the parameters."""
        if len(rows) > FEW:
            return columns_of(table, rows, self.parameters, overwrites=self.overwrites)
        for row in rows:
            cells += row
        return Cells(table, len(rows), _conflict(table, overwrites=self.overwrites))

    def _timed(self, guard: str) -> str:
        """The guard, which writes the time of the server into the lease of a partial message."""
        return _by_servers_clock(guard) if _LEASE in (self.parameters["open_calls"] or "") else guard

    def run_steps(self, sql: WriteSql, parameters: dict[str, Any]) -> set[str] | None:
        """Run the guard and the steps. Returns the names of the steps that returned a row; None if the guard failed."""
        guard = map(self._timed, self.guard.alone) if sql.dialect == "postgresql" else self.guard.alone
        if not all(sql.fetch(text, parameters) for text in guard):
            return None
        return {step.name for step in self.steps if sql.fetch(_without_guard(step), parameters)}


_LEASE = '"lease":['
"""It stands in JSON once, before the time of the last write: in a text, its quotes would be escaped."""
_WRITTEN_NOW = f"regexp_replace(:open_calls::text, '\"lease\":[[][0-9]+', '{_LEASE}' || {CLOCK['postgresql']})"


@lru_cache(maxsize=32)
def _by_servers_clock(guard: str) -> str:
    return guard.replace(":open_calls::text", ":open_calls").replace(":open_calls", _WRITTEN_NOW)


def _overwrite(table: str) -> str:
    key, changing = (*KEYS[table], *TABLES[table][:2]), TABLES[table][2:]
    return (
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changing)}"
    )


_UNLESS_STORED = {"runs": " ON CONFLICT DO NOTHING"}
_OVERWRITING = _UNLESS_STORED | {table: _overwrite(table) for table in ("message_parts", "tool_calls")}


def _conflict(table: str, *, overwrites: bool) -> str:
    return (_OVERWRITING if overwrites else _UNLESS_STORED).get(table, "")


# --- In one statement, on PostgreSQL ----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def chain(guard: str, parts: tuple[Step | Columns | Cells, ...], answer: str, source: Source = _TIP) -> str:
    """One statement. PostgreSQL checks its foreign keys at the end, so the order inside does not matter."""
    return ",\n".join([guard, *(_part(part, source) for part in parts)]) + f"\n{answer}"


def _part(part: Step | Columns | Cells, source: Source) -> str:
    if isinstance(part, Step):
        return f"{part.name} AS ({part.text.replace('{guard}', ' AND EXISTS (SELECT FROM tip)')})"
    return f"{part.table} AS ({insert_from(source, part)})"


FEW = 8
"""Maximum number of rows whose cells are parameters. The driver takes four times as long for the arrays of two rows as
for their cells. Each number of rows is a statement of its own, so larger batches come as arrays.
"""


def columns_of(
    table: str, rows: Sequence[tuple[Any, ...]], parameters: dict[str, Any], *, overwrites: bool = False
) -> Columns:
    """Adds the parameters. Most columns of most batches are NULL. The driver works through an array element by element,
    whatever it holds, so a column of equal values is sent as one value.
    """
    varying, values = [], []
    for (column, parameter, often_the_same), own in zip(_PARAMETERS[table], zip(*rows, strict=True), strict=True):
        if often_the_same and own.count(own[0]) == len(own):
            if own[0] is not None:
                values.append(column)
                parameters[parameter] = own[0]
        else:
            varying.append(column)
            parameters[parameter] = own
    return Columns(table, tuple(varying), tuple(values), _conflict(table, overwrites=overwrites))


_OFTEN_THE_SAME = frozenset(GIVEN_COLUMNS) - {"role", "text"} | {
    "state",
    "violations",
    "created_at",
    "extras",
    "body",
    "arguments_form",
    "call_branch",
    "status",
    "started_at",
}
_PARAMETERS = {
    table: [
        (
            column,
            f"{table}_{column}",
            column in _OFTEN_THE_SAME and column != columns[0],  # the first tells the rows apart
        )
        for column in columns
    ]
    for table, columns in TABLES.items()
}


@lru_cache(maxsize=512)
def insert_from(source: Source, shape: Columns | Cells) -> str:
    """An INSERT of rows on PostgreSQL, if the source has a row."""
    key = source.key[: len(KEYS[shape.table])]
    if isinstance(shape, Cells):
        select = f" SELECT {', '.join(key)}, u.* FROM {source.row}, (VALUES {_cells(shape)}) AS u"
        return f"{_into(shape.table, TABLES[shape.table])}{select}{source.condition}{shape.conflict}"
    values = [_parameter(shape.table, column) for column in shape.values]
    arrays = [f"{_parameter(shape.table, column)}[]" for column in shape.varying]
    if source.numbered:
        varying = [f"u.{column}" for column in shape.varying]
        unnested = ", ".join([f":{shape.table}_numbers::bigint[]", *arrays])
        rows = f" JOIN unnest({unnested}) AS u ({', '.join(('number', *shape.varying))}) USING (number)"
    else:
        varying, rows = ["u.*"], f", unnest({', '.join(arrays)}) AS u"
    into, selected = _into(shape.table, [*shape.values, *shape.varying]), ", ".join([*key, *values, *varying])
    return f"{into} SELECT {selected} FROM {source.row}{rows}{source.condition}{shape.conflict}"


def _into(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {{schema}}{table} ({', '.join((*KEYS[table], *columns))})"


def _cells(cells: Cells, first: Sequence[str] = ()) -> str:
    typed = [f"{{cell}}::{_TYPES.get(column, 'text')}" for column in TABLES[cells.table]]
    return ", ".join([f"({', '.join([*first, *typed])})"] * cells.rows)


def _parameter(table: str, column: str) -> str:
    return f":{table}_{column}::{_TYPES.get(column, 'text')}"


# --- In one statement for each table: on SQLite, and where the tables are distributed by tenant -----------------------


@lru_cache(maxsize=128)
def _without_guard(step: Step) -> str:
    return step.text.replace("{guard}", "")


def write_by_table(sql: WriteSql, *writes: GuardedWrite) -> list[set[str]] | None:
    """Write in a transaction, in a statement for each guard, each step, and each table of rows. Returns for each write
    the names of its steps that returned a row. None if a guard failed: then nothing of that write is written, and the
    caller undoes what the writes before it wrote.
    """
    done = []
    for write in writes:
        parameters = write.parameters if sql.dialect == "postgresql" else _moments_as_integers(write.parameters)
        names = write.run_steps(sql, parameters)
        if names is None:
            return None
        done.append(names)
    for table in TABLES:
        own = [write for write in writes if write.rows.get(table)]
        if own and sql.dialect != "postgresql":
            rows = [key + row for write in own for key in (_key(write, table),) for row in write.rows[table]]
            conflict = _conflict(table, overwrites=own[0].overwrites)
            sql.load(table, *as_on_sqlite((*KEYS[table], *TABLES[table]), rows), conflict)
            continue
        for write in own:
            write.parameters[CELLS] = cells = list[Any]()
            shape = write.shape(table, write.rows[table], cells)
            statement = _insert_values(shape) if isinstance(shape, Cells) else insert_from(_STORED_TIP, shape)
            sql.fetch(statement, write.parameters)
    return done


def _key(write: GuardedWrite, table: str) -> tuple[Any, ...]:
    key = (write.parameters["tenant"], write.parameters["thread"], write.parameters["branch"])
    return key[: len(KEYS[table])]


@lru_cache(maxsize=64)
def _insert_values(cells: Cells) -> str:
    """An INSERT that gives the tenant as a value, so that a distributed PostgreSQL knows its server when it plans."""
    key = _OF_PARAMETERS[: len(KEYS[cells.table])]
    return f"{_into(cells.table, TABLES[cells.table])} VALUES {_cells(cells, key)}{cells.conflict}"


def as_on_sqlite(columns: Sequence[str], rows: Sequence[Row]) -> tuple[Sequence[str], Sequence[Row]]:
    """The columns and rows for SQLite: the columns that hold a value. A column that is left out is NULL and costs
    nothing. Moments become integers.
    """
    given = {
        column: _microseconds(own) if column.endswith("_at") else own
        for column, own in zip(columns, zip(*rows, strict=True), strict=True)
        if own[0] is not None or own.count(None) < len(own)
    }
    return list(given), list(zip(*given.values(), strict=True))


def _microseconds(moments: Sequence[datetime]) -> Sequence[int]:
    """Converts each distinct moment once: the messages of an append, and often those of many threads, share theirs."""
    known = {moment: to_microseconds(moment) for moment in set(moments)}
    return [known[moment] for moment in moments]


_MOMENTS = ("now", "stale", "created")


def _moments_as_integers(parameters: Mapping[str, Any]) -> dict[str, Any]:
    moments = {name: to_microseconds(parameters[name]) for name in _MOMENTS if name in parameters}
    return {**parameters, **moments}
