"""Reads the rows of many intervals, of any branches and threads of a tenant, with one statement a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import Row, Sql
from chatledger.storage.rows.encryption import Tenant


class Piece(NamedTuple):
    """The positions first … last that a branch stores. `thread` is the key as stored."""

    thread: str
    branch: int
    first: int
    last: int


_PIECES = {
    "postgresql": """
SELECT {columns} FROM unnest(:threads::text[], :branches::int[], :firsts::bigint[], :lasts::bigint[])
  AS g (thread_id, branch, first, last)
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
    sql: Sql,
    tenant: Tenant,
    table: str,
    columns: Sequence[str],
    pieces: Sequence[Sequence[Any]],
    rest: str = "",
    given: Mapping[str, Any] | None = None,
    place: tuple[str, str] = ("branch", "seq"),
) -> Sequence[Row]:
    """The rows, as they are stored and in no order. `columns` belong to the row `r` of the table. `rest` is the end of
    the statement, joins and conditions, with the parameters `given`. `place` names the columns of branch and position.
    """
    named = ", ".join(name if "." in name else f"r.{name}" for name in columns)
    statement = _PIECES[sql.dialect] + rest
    for word, name in {"table": table, "columns": named, "branch": place[0], "seq": place[1]}.items():
        statement = statement.replace("{" + word + "}", name)
    parameters: dict[str, Any] = {"tenant": tenant.key, **(given or {})}
    if sql.dialect == "postgresql":
        names = ("threads", "branches", "firsts", "lasts")
        parameters |= {name: list(column) for name, column in zip(names, zip(*pieces, strict=True), strict=True)}
    else:
        parameters["pieces"] = dumps([list(piece) for piece in pieces])
    return sql.fetch(statement, parameters)
