"""Reads the rows of a page of a list. The page ends before it would be larger than 8 MiB, and holds one item at least.

PostgreSQL adds up the sizes of the rows, which reads no long text, and sends those that fit. SQLite makes one row at a
time, so reading ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, LargeBinary, Select, Text, cast, func, literal, or_, select, type_coerce
from sqlalchemy.types import TypeEngine

from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.schema.columns import CodedText, JsonText, Key

T = TypeVar("T")

LARGEST = 8 * 1024 * 1024
"""Maximum bytes of the rows of a page, as they are stored."""
_SHORT = 64 * 1024
"""Bytes of rows that the event loop decodes itself."""
OF_ROW = 100
"""About the bytes of the short columns of a row."""
SIZE, FOUND = "row_bytes", "rows_found"
"""The columns that a bounded statement adds: the bytes of the row and, on PostgreSQL, how many rows there were."""


class Rows(NamedTuple):
    """The rows of a page, whether more follow, and the bytes of the rows."""

    rows: Sequence[Mapping[str, Any]]
    more: bool
    size: int

    def aside(self, work: Callable[[], T]) -> T:
        """The result of work on the rows: in a thread if they are long and the event loop asks."""
        return work() if self.size < _SHORT else apart_from_loop(work)


def fetch_rows(sql: ReadSql, statement: Select[Any], limit: int, *order: str, newest_first: bool = False) -> Rows:
    """The first rows of the statement in the order of these columns."""
    if sql.dialect == "postgresql":
        bounded = _fitting(statement, limit, order, newest_first)
    else:
        size = size_of(sql.dialect, statement.selected_columns).label(SIZE)
        bounded = _in_order(statement.add_columns(size, literal(0).label(FOUND)), limit, order, newest_first)
    taken = take(sql.execute(bounded).mappings(), limit)
    rows = [{name: row[name] for name in row if name not in (SIZE, FOUND)} for row in taken.rows]
    return taken._replace(rows=rows)


def take(pending: Iterable[Any], limit: int) -> Rows:
    """The rows that fit. `pending` has one more than `limit` rows, if there are so many. A row is decoded when it is
    taken: PostgreSQL's driver does so in the event loop, so long ones are taken in a thread.
    """
    taking = _Taking(pending, limit)
    taking.take(_SHORT)
    if taking.size > _SHORT:
        apart_from_loop(lambda: taking.take(LARGEST))
    return Rows(taking.rows, taking.more, taking.size)


class _Taking:
    """The rows of a page that is being read, and their size."""

    def __init__(self, pending: Iterable[Any], limit: int) -> None:
        self.rows: list[Mapping[str, Any]] = []
        self.more = False
        self.size = 0
        self._pending, self._limit = iter(pending), limit

    def take(self, most: int) -> None:
        """Takes rows until they have more than `most` bytes, or the page ends."""
        for row in self._pending:
            self.size += row[SIZE]
            if len(self.rows) == self._limit or (self.rows and self.size > LARGEST):
                self.more = True
                return
            self.rows.append(row)
            self.more = row[FOUND] > len(self.rows)
            if self.size > most:
                return


def _fitting(statement: Select[Any], limit: int, order: Sequence[str], newest_first: bool) -> Select[Any]:
    near = _in_order(statement, limit, order, newest_first).subquery("near")
    in_order = [near.c[name].desc() if newest_first else near.c[name] for name in order]
    size = size_of("postgresql", near.c)
    total = func.sum(size).over(order_by=in_order, rows=(None, 0))
    sized = select(near, size.label(SIZE), total.label("total"), func.count().over().label(FOUND)).subquery("sized")
    shown = [column for column in sized.c if column.name != "total"]
    fits = or_(sized.c.total <= LARGEST, sized.c.total == sized.c[SIZE])
    return (
        select(*shown)
        .where(fits)
        .order_by(*(sized.c[name].desc() if newest_first else sized.c[name] for name in order))
    )


def _in_order(statement: Select[Any], limit: int, order: Sequence[str], newest_first: bool) -> Select[Any]:
    columns = [statement.selected_columns[name] for name in order]
    return statement.order_by(*(column.desc() if newest_first else column for column in columns)).limit(limit + 1)


def size_of(dialect: str, columns: Iterable[ColumnElement[Any]]) -> ColumnElement[int]:
    """About the bytes of a row."""
    size: Any = OF_ROW
    for column in columns:
        if _may_be_long(column.type):
            text: Any = type_coerce(column, Text())
            octets = func.octet_length(text) if dialect == "postgresql" else func.length(cast(text, LargeBinary))
            size = func.coalesce(octets, 0) + size
    return size  # type: ignore[no-any-return]


def _may_be_long(type_: TypeEngine[Any]) -> bool:
    return isinstance(type_, (CodedText, JsonText, Text)) and not isinstance(type_, Key)
