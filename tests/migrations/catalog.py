"""The whole of a schema as a value, so that two can be compared with `==`.

Columns with types, collations, nullability and defaults; keys, checks, indexes with their predicates, storage
parameters, views; sequences and triggers too, of which there must be none. The order of columns is left out: a later
revision can only add at the end.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, text

from tests.conftest import Database
from tests.migrations.access import connected, schema_of

Catalog = dict[str, Any]


def read_catalog(database: Database, schema: str | None = None) -> Catalog:
    read = _read_postgresql if database.kind == "postgresql" else _read_sqlite
    return connected(database, lambda connection: read(connection, schema or schema_of(database)))


# --- PostgreSQL -------------------------------------------------------------------------------------------------------

_RELATIONS = """
SELECT c.relname, c.relkind::text, c.relispartition, c.reloptions::text, pg_get_partkeydef(c.oid)
FROM pg_class c WHERE c.relnamespace = to_regnamespace(:schema)
"""
_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), l.collname, a.attnotnull, a.attidentity::text,
  a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_collation l ON l.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind IN ('r', 'p', 'v')
"""
_CONSTRAINTS = """
SELECT c.relname, n.conname, n.contype::text, n.condeferrable, n.condeferred, n.convalidated,
  pg_get_constraintdef(n.oid)
FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid WHERE n.connamespace = to_regnamespace(:schema)
"""
_INDEXES = """
SELECT t.relname, i.relname, x.indisvalid, x.indisunique, x.indisprimary, pg_get_indexdef(x.indexrelid)
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE i.relnamespace = to_regnamespace(:schema)
"""
_VIEWS = "SELECT viewname, definition FROM pg_views WHERE quote_ident(schemaname) = :schema"
_TRIGGERS = """
SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace(:schema) AND NOT t.tgisinternal
"""
_POSTGRESQL = {
    "relations": _RELATIONS,
    "columns": _COLUMNS,
    "constraints": _CONSTRAINTS,
    "indexes": _INDEXES,
    "views": _VIEWS,
    "triggers": _TRIGGERS,
}


def _read_postgresql(connection: Connection, schema: str | None) -> Catalog:
    quoted = connection.dialect.identifier_preparer.quote(schema or "")
    return {
        name: sorted((tuple(row) for row in connection.execute(text(query), {"schema": quoted})), key=repr)
        for name, query in _POSTGRESQL.items()
    }


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _read_sqlite(connection: Connection, _schema: str | None) -> Catalog:
    objects = connection.execute(text("SELECT type, name, tbl_name, sql FROM sqlite_master")).all()
    return {
        f"{kind} {name}": _definition(connection, kind, name, table, sql)
        for kind, name, table, sql in objects
        if sql is not None  # the index of a key has no words of its own; it is told by its table
    }


def _definition(connection: Connection, kind: str, name: str, table: str, sql: str) -> Any:
    if kind != "table":
        return table, _plain(sql)
    return {"elements": sorted(_elements(sql)), **{pragma: _told(connection, pragma, name) for pragma in _PRAGMAS}}


_PRAGMAS = {
    "table_xinfo": "SELECT name, type, [notnull], dflt_value, pk, hidden FROM pragma_table_xinfo(:name)",
    "foreign_key_list": 'SELECT "table", "from", "to", on_update, on_delete, match FROM pragma_foreign_key_list(:name)',
    "index_list": """
        SELECT l."unique", l.origin, l.partial, group_concat(x.name || ' ' || x.coll || ' ' || x.desc)
        FROM pragma_index_list(:name) l, pragma_index_xinfo(l.name) x WHERE x.key GROUP BY l.name""",
}


def _told(connection: Connection, pragma: str, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in connection.execute(text(_PRAGMAS[pragma]), {"name": name})), key=repr)


def _elements(create_table: str) -> list[str]:
    """The columns and constraints between the outer parentheses, in any order."""
    inner = _plain(create_table).partition("(")[2].rpartition(")")[0]
    elements, depth = [""], 0
    for character in inner:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            elements.append("")
        else:
            elements[-1] += character
    return [element.strip() for element in elements]


def _plain(sql: str) -> str:
    """Without what does not matter: white space and quotes around names."""
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql.replace('"', ""))).strip()
