"""The statement that reads threads, each with the count and the preview of its active branch; lists and counts them.

The preview is looked up when a thread is read, and stored nowhere: a redaction or an erasure would have to find every
copy. The look-up reads at most the last 50 positions of the branch, own and shared ones, and takes only the beginning
of a text out of the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    BigInteger,
    Integer,
    MappingResult,
    RowMapping,
    TextClause,
    TextualSelect,
    bindparam,
    column,
    text,
)
from sqlalchemy.types import TypeEngine

from chatledger.errors import InvalidCursor
from chatledger.models import Page, Thread
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import damaged_active_branch, read_lineage
from chatledger.storage.lists.bounded import FOUND, LARGEST, OF_ROW, SIZE, take
from chatledger.storage.lists.cursors import read_cursor, to_page, write_cursor
from chatledger.storage.lists.many import chunks, read_ids
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, to_model
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import branches, message_parts, messages, threads
from chatledger.storage.schema.text import CIPHERTEXT_MARK, ESCAPE_MARK

Row: TypeAlias = RowMapping | Mapping[str, Any]
ThreadOrder: TypeAlias = Literal["active", "created"]
"""The order of a list of threads: by the time of the last write, or of the creation."""

PREVIEW_CHARACTERS = 200
_POSITIONS = 50
"""How far back from the end of its branch a preview is looked for."""
_LONGEST_ESCAPE = len("\\ud800")
_CIPHERTEXT_BYTES = 8_192
"""Ciphertext is opened whole or not at all. The text of a longer cell has no preview."""
_COLUMNS = tuple(column for column in threads.c if column.name != "tenant_id")


# --- The statement ----------------------------------------------------------------------------------------------------

# Ciphertext of an empty text: the base64 of the 28 bytes of nonce and tag alone, which has no colon in it. That of one
# or two bytes is as long, and its padding is shorter.
_ENCRYPTED_EMPTY = f"'{CIPHERTEXT_MARK}%\\:{'_' * 38}=='"  # SQLAlchemy takes a bare colon for a parameter


def _has_words(cell: str) -> str:
    """Whether a text is not empty. Long texts are measured, because a comparison would read them whole."""
    return f"CASE WHEN {{bytes}}({cell}) > 200 THEN true ELSE {cell} <> '' AND {cell} NOT LIKE {_ENCRYPTED_EMPTY} END"


def _beginning(cell: str) -> str:
    """The beginning of a text, as long as a preview needs: longer if it may hold escapes, and whole if it is
    ciphertext.
    """
    return f"""CASE substr({cell}, 1, 1)
    WHEN '{ESCAPE_MARK}' THEN substr({cell}, 1, {1 + PREVIEW_CHARACTERS * _LONGEST_ESCAPE})
    WHEN '{CIPHERTEXT_MARK}' THEN CASE WHEN {{bytes}}({cell}) <= {_CIPHERTEXT_BYTES} THEN {cell} END
    ELSE substr({cell}, 1, {PREVIEW_CHARACTERS}) END"""


_PARTS = f"""
FROM {{schema}}message_parts p WHERE p.tenant_id = :tenant AND p.thread_id = m.thread_id AND p.branch = m.branch
  AND p.seq = m.seq AND p.channel = 'content' AND p.kind = 'text' AND {_has_words("p.text")} ORDER BY p.idx LIMIT 1
"""
# A scalar subquery in place of EXISTS: that one PostgreSQL may answer by reading all parts of the table.
_MESSAGES = f"""
FROM {{schema}}messages m WHERE m.tenant_id = :tenant AND m.thread_id = t.thread_id AND {{in_segment}}
  AND m.role IN ('user', 'assistant')
  AND ({_has_words("m.text")} OR (m.content_form = 'parts' AND (SELECT p.idx {_PARTS}) IS NOT NULL))
ORDER BY m.seq DESC LIMIT 1
"""
_BYTES = f"{OF_ROW} + " + " + ".join(f"coalesce({{octets}}t.{name}{{octets_as}}, 0)" for name in ("title", "metadata"))
_FITS = f"t.total <= {LARGEST} OR t.total = t.{SIZE}"
_FOUND = f"""
SELECT {", ".join(f"t.{column.name}" for column in _COLUMNS)}, b.lineage, b.last_seq, b.absent,
  m.branch, m.seq, {_beginning("m.text")}, p.idx, {_beginning("p.text")}
"""
_TYPES: tuple[Any, ...] = (
    *_COLUMNS,
    *(branches.c[name] for name in ("lineage", "last_seq", "absent")),
    *(messages.c[name].label(f"preview_{name}") for name in ("branch", "seq", "text")),
    *(message_parts.c[name].label(f"part_{name}") for name in ("idx", "text")),
    *(column(name, BigInteger()) for name in (SIZE, FOUND)),
)

# PostgreSQL reads the page first, whatever it expects, and then joins the rows of its threads by key. The limit of each
# join repeats what its key guarantees, because the planner would expect many rows if an id is in many tenants.
# Each table is compared with the tenant's parameter: distributed PostgreSQL does not take the tenant of an outer row.
# The shape of a lineage is tested before it is read as JSON: a damaged one must not fail the statement of a whole page.
_POSTGRESQL = f"""
WITH near AS MATERIALIZED (
  SELECT t.*, {_BYTES} AS {SIZE} FROM {{schema}}threads t WHERE {{where}}{{order}}
), sized AS (
  SELECT t.*, sum({SIZE}) OVER ({{again}} ROWS UNBOUNDED PRECEDING) AS total, count(*) OVER () AS {FOUND} FROM near t
), page AS MATERIALIZED (
  SELECT * FROM sized t WHERE {{fits}}
)
{_FOUND}, t.{SIZE}, t.{FOUND}
FROM page t
LEFT JOIN LATERAL (
  SELECT * FROM {{schema}}branches b
  WHERE b.tenant_id = :tenant AND b.thread_id = t.thread_id AND b.branch = t.active_branch LIMIT 1
) b ON true
LEFT JOIN LATERAL (
  SELECT m.* FROM (
    SELECT (e.value->>0)::int AS branch, greatest((e.value->>1)::bigint, b.last_seq - {_POSITIONS - 1}) AS low,
      least(coalesce((e.value->>2)::bigint, b.last_seq), b.last_seq) AS high
    FROM json_array_elements(CASE WHEN b.lineage ~ '{{shape}}' THEN b.lineage::json END) AS e (value)
    WHERE (e.value->>1)::bigint <= b.last_seq
      AND coalesce((e.value->>2)::bigint, b.last_seq) > b.last_seq - {_POSITIONS}
  ) s CROSS JOIN LATERAL (SELECT m.* {_MESSAGES}) m ORDER BY m.seq DESC LIMIT 1
) m ON true
LEFT JOIN LATERAL (SELECT p.idx, p.text {_PARTS}) p ON m.content_form = 'parts'
{{again}}
"""
_SEGMENT = "[[][0-9]{1,9},[0-9]{1,18},([0-9]{1,18}|null)[]]"
_SHAPE = f"^[[]{_SEGMENT}(,{_SEGMENT})*[]]$"

# SQLite has no lateral joins, and joins in the order of the index that it lists threads by.
_LOW, _HIGH = (f"json_extract(b.lineage, json_each.fullkey || '[{place}]')" for place in (1, 2))
_IN_SEGMENT = f"""
m.branch = json_extract(b.lineage, json_each.fullkey || '[0]')
  AND m.seq BETWEEN max({_LOW}, b.last_seq - {_POSITIONS - 1}) AND min(coalesce({_HIGH}, b.last_seq), b.last_seq)
"""
_SQLITE = f"""
{_FOUND}, {_BYTES}, 0
FROM {{schema}}threads t
LEFT JOIN {{schema}}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
LEFT JOIN {{schema}}messages m ON m.rowid = (
  SELECT found FROM (
    SELECT (SELECT m.rowid {_MESSAGES}) AS found
    FROM json_each(CASE WHEN json_valid(b.lineage) THEN b.lineage ELSE '[]' END)
    WHERE {_LOW} <= b.last_seq AND coalesce({_HIGH}, b.last_seq) > b.last_seq - {_POSITIONS}
    ORDER BY json_each.key DESC LIMIT {_POSITIONS}
  ) WHERE found IS NOT NULL LIMIT 1
)
LEFT JOIN {{schema}}message_parts p ON m.content_form = 'parts' AND p.rowid = (SELECT p.rowid {_PARTS})
WHERE {{where}}{{order}}
"""
_BINDS: dict[str, TypeEngine[Any]] = {
    "tenant": Key(),
    "thread_id": Key(),
    "user_id": Key(),
    "kind": Key(),
    "place": Moment(),
    "since": Moment(),
    "until": Moment(),
    "size": Integer(),
}


@lru_cache(maxsize=256)
def _statement(dialect: str, schema: str | None, where: str, order: str = "", again: str = "") -> TextualSelect:
    """Without an order, all of the rows, and otherwise those that fit into a page."""
    names = {"schema": _prefix(schema), "shape": _SHAPE, "where": where, "order": order, "again": again}
    names["fits"] = _FITS if order else "true"
    if dialect == "postgresql":
        names |= {"bytes": "octet_length", "octets": "octet_length(", "octets_as": ")"}
        statement = _POSTGRESQL.format(**names, in_segment="m.branch = s.branch AND m.seq BETWEEN s.low AND s.high")
    else:
        names |= {"bytes": "length", "octets": "length(CAST(", "octets_as": " AS BLOB))"}
        statement = _SQLITE.format(**names, in_segment=_IN_SEGMENT)
    return _bound(statement).columns(*_TYPES)


def _bound(statement: str) -> TextClause:
    """The statement with the types of its parameters."""
    written = text(statement)
    names = [name for name in _BINDS if f":{name}" in statement]
    binds = [bindparam(name, type_=_BINDS[name]) for name in names]
    if ":ids" in statement:
        binds.append(bindparam("ids", type_=Key(), expanding=True))
    return written.bindparams(*binds)


def _prefix(schema: str | None) -> str:
    return f'"{schema}".' if schema else ""


# --- Threads by id ----------------------------------------------------------------------------------------------------


def find_thread(sql: ReadSql, tenant: Tenant, thread_id: str) -> Thread | None:
    where, parameters = ThreadFilter(tenant.user_id, archived=None).condition(tenant, sql.dialect)
    rows = _read(sql, f"{where} AND t.thread_id = :thread_id", {**parameters, "thread_id": thread_id})
    row = rows.one_or_none()
    return None if row is None else _to_thread(tenant, row)


async def find_threads(scope: Scope, thread_ids: Sequence[str]) -> dict[str, Thread]:
    """The existing threads, keyed by id. One query reads up to 500 of them. Invalid ids are ignored."""
    ids = read_ids("thread_ids", thread_ids)
    return await scope.read(lambda sql: _find_threads(sql, scope.tenant, ids))


def _find_threads(sql: ReadSql, tenant: Tenant, thread_ids: Sequence[str]) -> dict[str, Thread]:
    where, parameters = ThreadFilter(tenant.user_id, archived=None).condition(tenant, sql.dialect)
    threads_by_id: dict[str, Thread] = {}
    for some in chunks(thread_ids):
        rows = _read(sql, f"{where} AND t.thread_id IN :ids", {**parameters, "ids": some})
        threads_by_id |= {row["thread_id"]: _to_thread(tenant, row) for row in rows}
    return threads_by_id


def _read(sql: ReadSql, where: str, parameters: dict[str, Any], order: str = "", again: str = "") -> MappingResult:
    statement = _statement(sql.dialect, sql.schema, where, order, again)
    return sql.execute(statement, parameters).mappings()


def _to_thread(tenant: Tenant, row: Row) -> Thread:
    """Raises DamagedCell and EncryptionError."""
    fields = decrypt_values(tenant, threads, {column.name: row[column.name] for column in _COLUMNS})
    thread_id, active = row["thread_id"], row["active_branch"]
    if row["lineage"] is None:
        raise damaged_active_branch(thread_id)
    read_lineage(row["lineage"], thread_id, active)
    numbers = {"last_seq": row["last_seq"], "absent": 0 if row["absent"] is None else row["absent"]}
    for name, number in numbers.items():
        if type(number) is not int:
            raise damaged_cell(branches, name, {"thread_id": thread_id, "branch": active})
    beside = {
        "version": fields.pop("revision") or 0,
        "message_count": numbers["last_seq"] - numbers["absent"],
        "preview": _preview(tenant, row),
    }
    return to_model(Thread, threads, fields, {**fields, **beside}, {"version": "revision"})


def _preview(tenant: Tenant, row: Row) -> str | None:
    place = {"thread_id": row["thread_id"], "branch": row["preview_branch"], "seq": row["preview_seq"]}
    if row["part_text"] is not None:
        decrypted = decrypt_values(tenant, message_parts, {"text": row["part_text"]}, **place, idx=row["part_idx"])
    elif row["preview_text"] is not None:
        decrypted = decrypt_values(tenant, messages, {"text": row["preview_text"]}, **place)
    else:
        return None
    text: str = decrypted["text"]
    return text[:PREVIEW_CHARACTERS]  # an escape that the statement cut in two lies behind these


# --- Lists ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """The threads of a list or a count. None means all; `archived` None means archived threads and others."""

    user_id: str | None = None
    kind: str | None = None
    archived: bool | None = False
    since: datetime | None = None
    until: datetime | None = None

    def condition(self, tenant: Tenant, dialect: str) -> tuple[str, dict[str, Any]]:
        """The condition on `t`, and its parameters. It includes a thread whose `archived_at` is damaged, which only
        SQLite can store, so that the page reports it.
        """
        parameters = {"user_id": self.user_id, "kind": self.kind, "since": self.since, "until": self.until}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        conditions = ["t.tenant_id = :tenant", *(_CONDITIONS[name] for name in parameters)]
        if self.archived is not None:
            absent = "t.archived_at IS NULL" if dialect == "postgresql" else "typeof(t.archived_at) <> 'integer'"
            conditions.append("t.archived_at IS NOT NULL" if self.archived else absent)
        return " AND ".join(conditions), {"tenant": tenant.name, **parameters}


_CONDITIONS = {
    "user_id": "t.user_id = :user_id",
    "kind": "t.kind = :kind",
    "since": "t.active_at >= :since",
    "until": "t.active_at < :until",
}


@dataclass(frozen=True, slots=True)
class ThreadWindow:
    """The page of a list: its order, and where it begins."""

    order: ThreadOrder
    newest_first: bool
    limit: int
    cursor: str | None = None

    @property
    def column(self) -> str:
        return f"{self.order}_at"

    @property
    def name(self) -> str:
        """The order as a cursor keeps it, because its place means nothing in another order."""
        return f"{self.order} {'desc' if self.newest_first else 'asc'}"


def cursor_behind(thread: Thread, *, newest_first: bool) -> str:
    """The cursor of a list by creation that continues behind the thread."""
    name = ThreadWindow("created", newest_first, 0).name
    return write_cursor(name, thread.created_at, thread.thread_id)


def list_threads(sql: ReadSql, tenant: Tenant, chosen: ThreadFilter, window: ThreadWindow) -> Page[Thread]:
    """Raises InvalidCursor."""
    condition, parameters = chosen.condition(tenant, sql.dialect)
    behind = "<" if window.newest_first else ">"
    if window.cursor is not None:
        name, moment, thread_id = read_cursor(window.cursor, str, datetime, str)
        if name != window.name:
            raise InvalidCursor(window.cursor, f"of a list in another order ({name}, not {window.name})")
        condition += f" AND (t.{window.column}, t.thread_id) {behind} (:place, :thread_id)"
        parameters |= {"place": moment, "thread_id": thread_id}
    direction = "DESC" if window.newest_first else "ASC"
    again = f" ORDER BY t.{window.column} {direction}, t.thread_id {direction}"
    read = _read(sql, condition, {**parameters, "size": window.limit + 1}, f"{again} LIMIT :size", again)
    rows = take(read, window.limit)
    return to_page(rows, lambda row: _to_thread(tenant, row), window.column, "thread_id", of=window.name)


def count_matching(sql: ReadSql, tenant: Tenant, chosen: ThreadFilter) -> int:
    condition, parameters = chosen.condition(tenant, sql.dialect)
    counted = f"SELECT count(*) FROM {_prefix(sql.schema)}threads t WHERE {condition}"
    count: int = sql.execute(_bound(counted), parameters).scalar_one()
    return count
