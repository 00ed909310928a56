"""The databases that releases made, as rows: one file a revision, which both databases share, a row a line.

A line with `#` says what the rows after it are: of which table, with which columns, or what the ledger read of
which tenant when the file was written, with which fields. The tables are made by the revisions themselves. The first
line holds a digest of what they were then, so a released revision that is changed later is found. Times are
microseconds.

The first line of the files of `candidate` names their revision.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, inspect

from chatledger.admin import offline_sql
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.conftest import Database
from tests.migrations.access import connected, run_script, schema_of

FOLDER = Path(__file__).parent
LONG = "c" * 4_572
"""A call id that no index can hold as it is. The files say it in short."""
_SHORT = "<a long call id>"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIX = {"sqlite": "", "postgresql": "chatledger."}

Table = tuple[str, list[str], list[list[Any]]]
Reads = dict[str, dict[str, list[dict[str, Any]]]]


def released() -> list[str]:
    """The revisions whose databases are kept, from the oldest on."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def restore(database: Database, revision: str) -> None:
    """Make an empty database one of this released revision, with its rows."""
    run_script(database, script_of(revision, database.kind))


@cache
def script_of(revision: str, kind: Literal["sqlite", "postgresql"]) -> str:
    address = "unused.db" if kind == "sqlite" else "postgresql://unused"
    rows = [_insert(kind, table, columns, row) for table, columns, rows in kept_rows(revision) for row in rows]
    head, _ = _sections(revision)[0]
    if head.get("encrypted_at"):
        moment = _literal(kind, "encrypted_at", head["encrypted_at"])
        rows.append(f"UPDATE {_PREFIX[kind]}chatledger_version SET encrypted_at = {moment};")
    return offline_sql(address, to=head.get("revision", revision)) + "\n".join(["", *rows, ""])


def kept_rows(revision: str) -> list[Table]:
    """In an order that the foreign keys allow."""
    tables: list[Table] = [
        (head["table"], head["columns"], rows) for head, rows in _sections(revision) if head["#"] == "rows"
    ]
    return sorted(tables, key=lambda table: _ORDER.index(table[0]))


def kept_reads(revision: str) -> Reads:
    """What the ledger of that release read, by tenant and kind."""
    reads: Reads = {}
    for head, rows in _sections(revision):
        if head["#"] == "reads":
            items = [dict(zip(head["fields"], row, strict=True)) for row in rows] if "fields" in head else rows
            reads.setdefault(head["tenant"], {})[head["kind"]] = items
    return reads


def kept_schema(revision: str) -> dict[str, str]:
    """The digest of the tables, by kind of database."""
    head, _ = _sections(revision)[0]
    return {kind: head[kind] for kind in ("sqlite", "postgresql")}


def digest_of(database: Database) -> str:
    """Of tables, columns and their types, indexes, checks and foreign keys, by their names, alike on every server."""
    return connected(database, lambda connection: _digest(connection, schema_of(database)))


def write(revision: str, schema: dict[str, Any], tables: list[Table], reads: Reads) -> None:
    lines: list[Any] = [{"#": "schema", **schema}]
    for table, columns, rows in tables:
        lines += [{"#": "rows", "table": table, "columns": columns}, *rows]
    for tenant, kinds in reads.items():
        for kind, items in kinds.items():
            head = {"#": "reads", "tenant": tenant, "kind": kind}
            if len({tuple(item) for item in items}) == 1:
                lines += [{**head, "fields": list(items[0])}, *(list(item.values()) for item in items)]
            else:
                lines += [head, *items]
    text = "\n".join(json.dumps(line, separators=(",", ":"), default=str) for line in lines)
    (FOLDER / f"{revision}.jsonl").write_text(text.replace(LONG, _SHORT) + "\n")


_ORDER = ["workers", *(table.name for table in INSERTION_ORDER)]


def _sections(revision: str) -> list[tuple[dict[str, Any], list[Any]]]:
    sections: list[tuple[dict[str, Any], list[Any]]] = []
    for line in (FOLDER / f"{revision}.jsonl").read_text().replace(_SHORT, LONG).splitlines():
        value = json.loads(line)
        if isinstance(value, dict) and "#" in value:
            sections.append((value, []))
        else:
            sections[-1][1].append(value)
    return sections


def _insert(kind: str, table: str, columns: list[str], row: list[Any]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(_literal(kind, column, value) for column, value in zip(columns, row, strict=True))
    return f"INSERT INTO {_PREFIX[kind]}{table} ({names}) VALUES ({values});"


def _literal(kind: str, column: str, value: Any) -> str:
    if value is None:
        return "NULL"
    if kind == "postgresql" and column.endswith(("_at", "_until")):
        return f"'{(_EPOCH + timedelta(microseconds=value)).isoformat()}'"
    if isinstance(value, int | float):
        return f"'{value}'" if kind == "postgresql" else repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _digest(connection: Connection, schema: str | None) -> str:
    found = inspect(connection)
    names = [
        (
            table,
            sorted((one["name"], str(one["type"]), one["nullable"]) for one in found.get_columns(table, schema=schema)),
            sorted(str(one["name"]) for one in found.get_indexes(table, schema=schema)),
            sorted(str(one["name"]) for one in found.get_check_constraints(table, schema=schema)),
            sorted(str(one["constrained_columns"]) for one in found.get_foreign_keys(table, schema=schema)),
        )
        for table in sorted(found.get_table_names(schema=schema))
    ]
    return hashlib.sha256(re.sub(r"\s+", " ", repr(names)).encode()).hexdigest()[:16]
