"""The facts of docs/contribute/tables.md, made of the tables; its diagram, and docs/reference/views.md.

The diagram and the views are made when the site is built. `python -m tests.docs.tables` writes the facts of the tables,
and a test holds the page to them. The meaning of a table's column is written by hand: it stands only in the page, and
the script keeps it. A new column gets an empty one, which a test refuses.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Column, Dialect, ForeignKeyConstraint, Index, PrimaryKeyConstraint, Table, UniqueConstraint
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.schema import CreateTable

from chatledger.storage.rows.encryption import ENCRYPTED
from chatledger.storage.schema.tables import INSERTION_ORDER, SCHEMA, workers
from chatledger.storage.schema.view_columns import VIEW_COLUMNS, Type
from chatledger.storage.schema.views import VIEWS, create_view
from tests.docs.parts import DOCS, in_page, write_into_page

PAGE = DOCS / "contribute" / "tables.md"
_DATABASES: Sequence[Dialect] = (SQLiteDialect(), PGDialect())  # type: ignore[no-untyped-call]
_ROW = re.compile(r"^\| `(\w+)` \|(?:.*\|)? (.*) \|$", re.MULTILINE)


def meanings(name: str) -> dict[str, str]:
    """What the page says about each column of a table."""
    return {column: meaning.strip() for column, meaning in _ROW.findall(in_page(PAGE, name))}


def table(one: Table) -> str:
    said = meanings(one.name)
    rows = [
        f"| `{column.name}` | {_types(column)} | {'' if column.nullable else 'not NULL'} "
        f"| {'🔒 ' if column.name in ENCRYPTED.get(one.name, ()) else ''}"
        f"{said.get(column.name, '').removeprefix('🔒').strip()} |"
        for column in one.columns
    ]
    return "\n".join(["| column | type | | meaning |", "|---|---|---|---|", *rows, "", *_keys(one)])


def _types(column: Column[Any]) -> str:
    names = [str(column.type.compile(dialect=dialect)) for dialect in _DATABASES]
    names = [name.removesuffix(' COLLATE "C"').replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") for name in names]
    return f"`{names[0]}`" if names[0] == names[1] else f"`{names[0]}`, `{names[1]}`"


def _keys(one: Table) -> Iterable[str]:
    for rule in sorted(one.constraints, key=lambda rule: (_RANK.get(type(rule), 9), str(rule.name))):
        match rule:
            case PrimaryKeyConstraint():
                yield f"- Primary key: {_columns(rule.columns.keys())}"
            case UniqueConstraint():
                yield f"- Unique: {_columns(rule.columns.keys())}"
            case ForeignKeyConstraint():
                yield f"- Points at `{rule.referred_table.name}`: {_columns(rule.column_keys)}"
    for index in sorted(one.indexes, key=lambda index: str(index.name)):
        yield f"- {'Unique index' if index.unique else 'Index'}: {_columns(index.columns.keys())}{_where(index)}"


_RANK: Mapping[type, int] = {PrimaryKeyConstraint: 0, UniqueConstraint: 1, ForeignKeyConstraint: 2}


def _columns(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _where(index: Index) -> str:
    condition = index.dialect_kwargs.get("sqlite_where")
    return "" if condition is None else f" where `{condition}`"


def view_columns(name: str) -> list[str]:
    with sqlite3.connect(":memory:") as connection:
        for one in INSERTION_ORDER:
            statement = str(CreateTable(one).compile(dialect=_DATABASES[0])).replace(f"{SCHEMA}.", "")
            connection.execute(statement)
        connection.execute(create_view(name, "sqlite", None))
        return [column[0] for column in connection.execute(f"SELECT * FROM {name}").description]


def view(name: str) -> str:
    """The columns with what `chatledger schema --views` says of them."""
    columns = VIEW_COLUMNS[name].columns
    assert [column.name for column in columns] == view_columns(name)
    rows = [f"| `{column.name}` | {_named(column.type)} | {column.meaning} |" for column in columns]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


def _named(type_: Type) -> str:
    return f"`{type_.sqlite}`" if type_.sqlite == type_.postgresql else f"`{type_.sqlite}`, `{type_.postgresql}`"


TABLES = (*INSERTION_ORDER, workers)
MADE: Mapping[str, Callable[[], str]] = {one.name: partial(table, one) for one in TABLES}
MADE_VIEWS: Mapping[str, Callable[[], str]] = {name: partial(view, name) for name in VIEWS}

# The diagram: where each table stands (column and row of a grid) and which of its columns it shows.
SHOWN = {
    "threads": (0, 0, ("thread_id", "user_id", "active_branch", "active_at")),
    "branches": (1, 0, ("branch", "lineage", "last_seq", "open_calls")),
    "messages": (2, 0, ("seq", "message_id", "role", "text", "run_id", "state")),
    "message_parts": (3, 0, ("idx", "channel", "kind", "text", "body")),
    "agents": (0, 1, ("name", "definition", "settings")),
    "runs": (1, 1, ("run_id", "agent", "model", "status", "cost")),
    "revisions": (2, 1, ("seq", "kind", "target_seq", "body")),
    "tool_calls": (3, 1, ("idx", "call_id", "name", "arguments")),
    "kv": (0, 2, ("kind", "scope_id", "key", "value", "version")),
    "run_decisions": (1, 2, ("seq", "idx", "decision", "reason")),
    "feedback": (2, 2, ("feedback_id", "key", "score", "user_id")),
    "tool_results": (3, 2, ("call_branch", "call_seq", "call_idx")),
    "tenants": (0, 3, ("tenant_id", "encrypted_at")),
    "erasures": (1, 3, ("erasure_id", "kind", "subject", "rows")),
    "kept_scores": (2, 3, ("idx", "key", "score")),
    "outputs": (3, 3, ("idx", "nonce", "mime_type", "text")),
    "workers": (0, 4, ("worker_id", "lease_until")),
    "run_leases": (2, 4, ("agent", "attempt", "worker_id", "paused_at")),
}
_WIDTH, _GAP, _LINE, _TOP = 170, 56, 18, 30
_HEIGHT = 160
_STYLE = """
rect { fill: #ffffff; stroke: #6c7d8f } .head { fill: #dfe9f2 }
text { font: 13px sans-serif; fill: #1c2733 } .name { font-weight: bold } .key { text-decoration: underline }
path { fill: none; stroke: #8796a6; stroke-width: 1.5; marker-end: url(#tip) }
""".strip()


def picture() -> str:
    arrows = [_arrow(child, parent, *place) for child, parent, place in _links()]
    boxes = [_box(one) for one in TABLES]
    width, height = 4 * _WIDTH + 3 * _GAP + 20, 5 * _HEIGHT + 10
    tip = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        "<title>The tables of chatledger. An arrow points to the table that a foreign key names.</title>",
        f"<style>\n{_STYLE}\n</style>",
        f'<defs><marker id="tip" {tip}><polygon points="0,0 8,4 0,8" fill="#8796a6"/></marker></defs>',
    ]
    return "\n".join([*lines, *arrows, *boxes, "</svg>\n"])


def _corner(name: str) -> tuple[int, int]:
    column, row, _ = SHOWN[name]
    return 10 + column * (_WIDTH + _GAP), 10 + row * _HEIGHT


def _box(one: Table) -> str:
    left, top = _corner(one.name)
    shown = SHOWN[one.name][2]
    height = _TOP + _LINE * len(shown) + 4
    lines = [
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{height}"/>',
        f'<rect class="head" x="{left}" y="{top}" width="{_WIDTH}" height="24"/>',
        f'<text class="name" x="{left + 10}" y="{top + 17}">{one.name}</text>',
    ]
    for number, name in enumerate(shown):
        kind = ' class="key"' if one.columns[name].primary_key else ""
        lines.append(f'<text{kind} x="{left + 10}" y="{top + _TOP + 13 + number * _LINE}">{name}</text>')
    return "\n".join(lines)


def _links() -> list[tuple[str, str, tuple[int, int, int, int]]]:
    """Each foreign key, with its number among those that leave the child and those that reach the parent."""
    found = sorted(
        {
            (one.name, rule.referred_table.name)
            for one in INSERTION_ORDER
            for rule in one.constraints
            if isinstance(rule, ForeignKeyConstraint)
        },
        key=lambda link: (SHOWN[link[0]][0], SHOWN[link[0]][1], SHOWN[link[1]][1]),
    )
    sideways = [link for link in found if SHOWN[link[0]][0] != SHOWN[link[1]][0]]
    links = []
    for child, parent in found:
        if (child, parent) not in sideways:
            links.append((child, parent, (0, 1, 0, 1)))
            continue
        leaving = [link for link in sideways if link[0] == child]
        reaching = [link for link in sideways if link[1] == parent]
        place = (leaving.index((child, parent)), len(leaving), reaching.index((child, parent)), len(reaching))
        links.append((child, parent, place))
    return links


def _arrow(child: str, parent: str, out: int, outs: int, into: int, ins: int) -> str:
    (child_left, child_top), (parent_left, parent_top) = _corner(child), _corner(parent)
    if child_left == parent_left:
        x = child_left + _WIDTH // 2
        bottom = parent_top + _TOP + _LINE * len(SHOWN[parent][2]) + 4
        return f'<path d="M{x} {child_top} V{bottom + 2}"/>'
    start = child_top + 12 + out * 26
    right = parent_left + _WIDTH
    if start == parent_top + 12:
        return f'<path d="M{child_left} {start} H{right + 2}"/>'
    end = parent_top + 34 + into * 16
    turn = right + 10 + (_GAP - 22) * (ins - into) // (ins + 1) + (6 if SHOWN[parent][1] else 0)
    return f'<path d="M{child_left} {start} H{turn} V{end} H{right + 2}"/>'


if __name__ == "__main__":
    write_into_page(PAGE, MADE)
