"""Reads the rows of many intervals, of any branches and threads of a tenant, with one statement a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.rows.encryption import Tenant

MOST = 8 * 1024 * 1024
"""Bytes of the long column that `fetch_some` reads, with one cell more."""


class Interval(NamedTuple):
    """The positions first … last that a branch stores. `thread` is the key as stored."""

    thread: str
    branch: int
    first: int
    last: int


_PIECES = {
    "postgresql": """
SELECT {columns} FROM unnest(:threads::text[], :branches::int[], :firsts::bigint[], :lasts::bigint[])
  WITH ORDINALITY AS g (thread_id, branch, first, last, number)
CROSS JOIN LATERAL (SELECT * FROM {schema}{table} r WHERE r.tenant_id = :tenant AND r.thread_id = g.thread_id
  AND r.{branch} = g.branch AND r.{seq} BETWEEN g.first AND g.last OFFSET 0) r
""",
    "sqlite": """
SELECT {columns} FROM json_each(:pieces) g CROSS JOIN {schema}{table} r
  ON r.tenant_id = :tenant AND r.thread_id = json_extract(g.value, '$[0]')
  AND r.{branch} = json_extract(g.value, '$[1]')
  AND r.{seq} BETWEEN json_extract(g.value, '$[2]') AND json_extract(g.value, '$[3]')
""",
}


def fetch_pieces(
    sql: ReadSql,
    tenant: Tenant,
    table: str,
    columns: Sequence[str],
    pieces: Sequence[Sequence[Any]],
    rest: str = "",
    parameters: Mapping[str, Any] | None = None,
    place: tuple[str, str] = ("branch", "seq"),
) -> Sequence[Row]:
    """The rows, as they are stored and in no order. `columns` belong to the row `r` of the table. `rest` is the end of
    the statement, joins and conditions, with its `parameters`. `place` names the columns of branch and position.
    """
    return sql.fetch(*_statement(sql.dialect, tenant, table, columns, pieces, rest, parameters, place))


def fetch_some(
    sql: ReadSql,
    tenant: Tenant,
    table: str,
    columns: Sequence[str],
    long: str,
    pieces: Sequence[Sequence[Any]],
    rest: str = "",
    more: Mapping[str, Any] | None = None,
) -> tuple[Sequence[Row], int]:
    """The rows of the first pieces whose column `long` has no more than MOST bytes together, and the number of these
    pieces. A row ends with the number of its piece, counted from 0, and another number.
    """
    numbered = [*columns, *_NUMBERS[sql.dialect].format(long=long).split("; ")]
    statement, parameters = _statement(sql.dialect, tenant, table, numbered, pieces, rest, more)
    if sql.dialect == "postgresql":
        rows = sql.fetch(_some(columns, statement), {**parameters, "most": MOST})
        last = max(rows, key=itemgetter(-1), default=None)
        return (rows, len(pieces)) if last is None or last[-1] <= MOST else _before(rows, last)
    rows, left, at = list[Row](), MOST, columns.index(long)
    for row in sql.each(statement, parameters):
        if type(text := row[at]) is str:
            left -= len(text)
            if left < 0:
                return _before(rows, row)
        rows.append(row)
    return rows, len(pieces)


def _before(rows: Sequence[Row], last: Row) -> tuple[Sequence[Row], int]:
    """The rows of the pieces before that of the last row, which may be incomplete."""
    return [row for row in rows if row[-2] < last[-2]], last[-2]


_NUMBERS = {
    "postgresql": "g.number - 1 AS number; coalesce(octet_length(r.{long}), 0) AS bytes",
    "sqlite": "g.key; g.key",
}


def _some(columns: Sequence[str], statement: str) -> str:
    """The rows in the order of the pieces, up to the first with which they have more than MOST bytes."""
    return f"""
SELECT {", ".join(columns)}, number, total FROM (
  SELECT *, sum(bytes) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) AS total FROM ({statement}) AS found
) AS summed WHERE total - bytes <= :most::bigint
"""


def _statement(
    dialect: str,
    tenant: Tenant,
    table: str,
    columns: Sequence[str],
    pieces: Sequence[Sequence[Any]],
    rest: str,
    more: Mapping[str, Any] | None,
    place: tuple[str, str] = ("branch", "seq"),
) -> tuple[str, dict[str, Any]]:
    named = ", ".join(name if "." in name else f"r.{name}" for name in columns)
    statement = _PIECES[dialect] + rest
    for word, name in {"table": table, "columns": named, "branch": place[0], "seq": place[1]}.items():
        statement = statement.replace("{" + word + "}", name)
    parameters: dict[str, Any] = {"tenant": tenant.key, **(more or {})}
    if dialect == "postgresql":
        names = ("threads", "branches", "firsts", "lasts")
        parameters |= {name: list(column) for name, column in zip(names, zip(*pieces, strict=True), strict=True)}
    else:
        parameters["pieces"] = dumps([list(piece) for piece in pieces])
    return statement, parameters
