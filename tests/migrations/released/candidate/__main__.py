"""Keep the databases that the release candidate makes. Run it once, when a candidate is made:

    python -m tests.migrations.released.candidate

The candidate's own program (`make candidate`) fills two SQLite files, a plain and an encrypted one. Of each, a file
keeps the rows, which PostgreSQL takes as well, and what that program read of them.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from tests.conftest import Database
from tests.migrations.access import connected, schema_of
from tests.migrations.released import kept
from tests.migrations.released.candidate import KINDS, name_of, run_candidate

VERSION = "chatledger_version"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            keep(Database("sqlite", str(Path(folder) / f"{kind}.db")), kind)


def keep(database: Database, kind: str) -> None:
    reads = run_candidate("write", database.url, kind)
    tables = connected(database, lambda connection: rows_of(connection, schema_of(database)))
    (version,) = [dict(zip(columns, rows[0], strict=True)) for table, columns, rows in tables if table == VERSION]
    head = {"revision": version["version_num"], "encrypted_at": version["encrypted_at"]}
    kept.write(name_of(kind), head, [one for one in tables if one[0] != VERSION], reads)


def rows_of(connection: Connection, schema: str | None) -> list[kept.Table]:
    prefix = f'"{schema}".' if schema else ""
    tables = []
    for table in sorted(inspect(connection).get_table_names(schema=schema)):
        found = connection.execute(text(f"SELECT * FROM {prefix}{table} ORDER BY 1"))
        tables.append((table, list(found.keys()), [[_plain(value) for value in row] for row in found]))
    return tables


def _plain(value: Any) -> Any:
    """As SQLite has it: times in microseconds, and no booleans."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    return int(value) if isinstance(value, bool) else value


if __name__ == "__main__":
    main()
