"""Finds what a SQLite file would run beside the ledger: triggers on our tables, and views of another text than ours.

A file may come from somebody else. A trigger on `messages` sees each text that is written, and may copy it or change
it. Views and tables of a person's own stay, with the triggers on them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence

from sqlalchemy import URL

from chatledger.errors import StorageError
from chatledger.storage.schema.copy_triggers import SQLITE_TRIGGERS
from chatledger.storage.schema.tables import metadata
from chatledger.storage.schema.views import VIEWS, create_view
from chatledger.storage.upgrade.versions import HEAD, VERSION_TABLE

PARAMETER = "foreign_triggers"
"""The parameter of a URL by which an application allows them: `sqlite:///chat.db?foreign_triggers=allow`."""
_TABLES = {table.name for table in metadata.tables.values()} | {VERSION_TABLE}


def find_intruders(connection: sqlite3.Connection, revision: str | None) -> list[str]:
    """Each of them as `trigger copy_all on messages`. The views of another revision are not known here."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return [intruder for row in rows for intruder in _intruder(*row, is_head=revision == HEAD)]


def refuse_intruders(intruders: Sequence[str], path: str, url: URL | None) -> None:
    """Raises StorageError, unless the URL allows them."""
    if not intruders or (url is not None and url.query.get(PARAMETER) == "allow"):
        return
    raise StorageError(
        f"{path} has what is not of chatledger's schema and would run with it: {', '.join(intruders[:5])}; drop it, or "
        f"if you made it yourself, open sqlite:///{path}?{PARAMETER}=allow"
    )


def _intruder(kind: str, name: str, table: str, sql: str | None, *, is_head: bool) -> Iterator[str]:
    own, on = name.lower(), table.lower()
    if kind == "trigger" and (on in _TABLES or on in VIEWS) and _words(sql) != _words(SQLITE_TRIGGERS.get(name)):
        yield f"trigger {name} on {table}"
    elif kind == "view" and own in _TABLES:
        yield f"view {name} in the place of a table"
    elif kind == "view" and own in VIEWS and is_head and _words(sql) != _words(create_view(own, "sqlite", None)):
        yield f"view {name} with another text"
    elif kind == "table" and own in _TABLES and _words(sql).upper().startswith("CREATE VIRTUAL"):
        yield f"virtual table {name}"


def _words(sql: str | None) -> str:
    return re.sub(r"\s+", " ", sql or "").strip()
