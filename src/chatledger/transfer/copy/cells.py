"""The cells of rows on their way: as they are stored, in the same Python values on both databases.

Text, keys, JSON and ciphertext stay byte by byte: the place of an encrypted cell names its tenant and its key, and no
database. A moment is a number of microseconds, a boolean 0 or 1, and a decimal its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlalchemy import Boolean, Column, Float, Table

from chatledger.storage.schema.columns import CodedText, ExactDecimal, JsonText, Moment
from chatledger.storage.schema.tables import branches, runs
from chatledger.storage.schema.text import UNREADABLE, decode_object, encode_json, from_microseconds

Row = tuple[Any, ...]
MOVED = "moved"
"""The error of a run that was open when its row was read."""


def columns_of(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def cell(column: Column[Any], dialect: str, place: str) -> str:
    """What a statement selects of a column."""
    if dialect != "postgresql":
        return place
    if isinstance(column.type, Moment):
        return f"(extract(epoch FROM {place}) * 1000000)::bigint"
    if isinstance(column.type, Boolean):
        return f"{place}::int"
    return f"{place}::text" if isinstance(column.type, ExactDecimal) else place


def to_driver(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows as asyncpg takes them. Raises an error of UNREADABLE for a cell of another type: asyncpg would take 9
    for 9.5, and SQLite may hold that in a column of whole numbers.
    """
    for kinds in {tuple(map(type, row)) for row in rows}:
        _require_kinds(table, kinds)
    conversions = _conversions(table)
    return [_converted(row, conversions) for row in rows] if conversions else rows


@lru_cache(maxsize=2048)
def _require_kinds(table: Table, kinds: tuple[type, ...]) -> None:
    for column, kind in zip(table.columns, kinds, strict=True):
        if isinstance(column.type, (CodedText, JsonText, ExactDecimal)):
            allowed: tuple[type, ...] = (str,)
        else:
            allowed = (int, float) if isinstance(column.type, Float) else (int,)
        if kind not in (*allowed, type(None)):
            raise TypeError(f"{table.name}.{column.name}: {kind.__name__}")


def _converted(row: Row, conversions: Sequence[tuple[int, Callable[[Any], Any]]]) -> Row:
    cells = list(row)
    for index, convert in conversions:
        if cells[index] is not None:
            cells[index] = convert(cells[index])
    return tuple(cells)


@lru_cache(maxsize=256)
def _conversions(table: Table) -> list[tuple[int, Callable[[Any], Any]]]:
    truth = {0: False, 1: True}.__getitem__
    kinds: dict[type, Callable[[Any], Any]] = {Moment: from_microseconds, Boolean: truth, ExactDecimal: Decimal}
    return _converters(table, kinds, 0)


def _converters(
    table: Table, kinds: dict[type, Callable[[Any], Any]], behind: int
) -> list[tuple[int, Callable[[Any], Any]]]:
    return [
        (index + behind, convert)
        for index, column in enumerate(table.columns)
        for kind, convert in kinds.items()
        if isinstance(column.type, kind)
    ]


def places(table: Table, *names: str) -> tuple[int, ...]:
    """Where the cells of these columns stand in a row that was read: behind the unit, which comes first."""
    return tuple(1 + columns_of(table).index(name) for name in names)


def written_alike(table: Table, rows: Sequence[Row], *, behind: int = 1) -> Sequence[Row]:
    """Rows whose numbers are written alike. SQLite keeps the cost 1E+2 as it was given, where PostgreSQL says 100; and
    PostgreSQL keeps the score -0.0, where SQLite says 0.0. `behind`: the number of cells before those of the table.
    """
    spellings = _spellings(table, behind)
    return [_converted(row, spellings) for row in rows] if spellings else rows


@lru_cache(maxsize=256)
def _spellings(table: Table, behind: int) -> list[tuple[int, Callable[[Any], Any]]]:
    kinds: dict[type, Callable[[Any], Any]] = {ExactDecimal: _plain, Float: _without_minus}
    return _converters(table, kinds, behind)


def _plain(digits: str) -> str:
    number = Decimal(digits)
    return format(number if number else number.copy_abs(), "f")


def _without_minus(number: float) -> float:
    return number + 0.0  # -0.0 + 0.0 is 0.0


# --- What a copy changes ----------------------------------------------------------------------------------------------


class RowChanges:
    """What a copy changes in a row as it was read, before it compares it: so an unchanged source changes nothing.

    The lease of a draft ends, because its writer does not know the target. A run that is open ends as `cancelled` when
    it began, for the same reason. Its error says "moved", unless the tenant is encrypted: a copy has no keys.
    """

    def __init__(self, *, keep_open_runs: bool, encrypted: bool) -> None:
        self._keep_open_runs = keep_open_runs
        self._encrypted = encrypted

    def apply(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        if table is branches:
            return list(map(_without_lease, rows))
        if table is runs and not self._keep_open_runs:
            return [self._ended(row) if row[_STATUS] == "running" else row for row in rows]
        return rows

    def _ended(self, row: Row) -> Row:
        cells = list(row)
        cells[_STATUS], cells[_ENDED_AT] = "cancelled", cells[_STARTED_AT]
        if not self._encrypted:
            cells[_ERROR] = MOVED
        return tuple(cells)


_STATUS, _ERROR, _STARTED_AT, _ENDED_AT = places(runs, "status", "error", "started_at", "ended_at")
_PARTIAL, _OPEN_CALLS = places(branches, "partial_seq", "open_calls")


def _without_lease(row: Row) -> Row:
    if row[_PARTIAL] is None or row[_OPEN_CALLS] is None:
        return row
    try:
        waiting = decode_object(row[_OPEN_CALLS])
        if waiting["partial"].pop("lease", None) is None:
            return row
    except UNREADABLE:  # damaged, or of a draft without a lease
        return row
    return (*row[:_OPEN_CALLS], encode_json(waiting), *row[_OPEN_CALLS + 1 :])
