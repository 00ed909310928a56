"""Finds the cell of the source that no database can have written, so that the error names its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Float, Integer, SmallInteger, Table

from chatledger.errors import DamagedCell
from chatledger.storage.schema.columns import CodedText, ExactDecimal, JsonText, Moment, can_decode, holds
from chatledger.storage.schema.text import CIPHERTEXT_MARK, decode_text
from chatledger.transfer.copy.cells import Row

_BITS = {SmallInteger: 15, BigInteger: 63, Integer: 31}
"""The widths of whole numbers on PostgreSQL; a class comes before the one that it is derived from."""


def find_damage(table: Table, rows: Iterable[Row]) -> DamagedCell | None:
    """The first cell that does not hold a value of its column, if any. A row may begin with the key of its unit."""
    for row in rows:
        cells = row[len(row) - len(table.columns) :]
        for column, stored in zip(table.columns, cells, strict=True):
            if not _is_sound(column, stored):
                return damaged(table, column.name, row)
    return None


def damaged(table: Table, column: str, row: Row) -> DamagedCell:
    """The error for a cell of a row: it names the tenant, the thread and the key."""
    names = [own.name for own in table.columns]
    cells = dict(zip(names, row[len(row) - len(names) :], strict=True))
    keys = [name for name in names if name in ("tenant_id", "thread_id") or table.c[name].primary_key]
    key = {name: _readable(cells[name]) for name in keys if name != column and cells[name] is not None}
    unit = row[0] if len(row) > len(names) else None
    if isinstance(unit, str) and "thread_id" not in key:
        key = {"tenant_id": key.pop("tenant_id", None), "thread_id": _readable(unit), **key}
    return DamagedCell(table.name, column, key, holds(table.c[column].type))


def _readable(stored: Any) -> Any:
    if isinstance(stored, bytes):
        return stored.decode("utf-8", "replace")
    return decode_text(stored) if isinstance(stored, str) else stored


def _is_sound(column: Column[Any], stored: Any) -> bool:
    if stored is None:
        return bool(column.nullable)
    kind = column.type
    words = _words(column)
    if words is not None and stored not in words:
        return False
    if isinstance(kind, (CodedText, JsonText)):
        return _is_storable(stored) and (stored.startswith(CIPHERTEXT_MARK) or can_decode(kind, stored))
    if isinstance(kind, Float):
        return isinstance(stored, (int, float)) and isfinite(stored)
    if isinstance(kind, (Moment, Boolean)):
        return type(stored) is int and can_decode(kind, stored)
    if isinstance(kind, ExactDecimal):
        return isinstance(stored, str) and can_decode(kind, stored)
    bits = next(width for whole, width in _BITS.items() if isinstance(kind, whole))
    return type(stored) is int and -(2**bits) <= stored < 2**bits


@lru_cache(maxsize=256)
def _words(column: Column[Any]) -> frozenset[str] | None:
    """The words that the table allows in the column; None for any."""
    for constraint in column.table.constraints:
        if isinstance(constraint, CheckConstraint):
            among = re.fullmatch(rf"{column.name} IN \((.*)\)", str(constraint.sqltext))
            if among is not None:
                return frozenset(re.findall("'([^']*)'", among[1]))
    return None


def _is_storable(stored: Any) -> bool:
    """Whether PostgreSQL can store the text."""
    if type(stored) is not str or "\x00" in stored:
        return False
    try:
        stored.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_kinds(table: Table, tenant: str, columns: Sequence[str], cells: Sequence[Any], key: Sequence[str]) -> None:
    """Raises DamagedCell unless each cell holds a value of its column. `key`: the columns among them that name the
    row.
    """
    for name, stored in zip(columns, cells, strict=True):
        if not _is_sound(table.c[name], stored):
            place = {own: _readable(cells[columns.index(own)]) for own in key if own != name}
            place = {"tenant_id": decode_text(tenant), **place}
            raise DamagedCell(table.name, name, place, holds(table.c[name].type))
