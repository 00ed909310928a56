"""Keep the newest schema with rows, as both databases hold it today. Run it once, when a release is made:

    python -m tests.migrations.released.dump

It fills a SQLite file, one tenant of it encrypted, and writes the rows with what the ledger reads of them. Files of
earlier releases are history and never written again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from chatledger.admin import migrate
from chatledger.storage.schema.tables import INSERTION_ORDER
from chatledger.storage.upgrade.versions import HEAD
from tests.conftest import Database
from tests.migrations.released import kept
from tests.migrations.released.content import Reads, dumped, fill, opened, read
from tests.postgres import server


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, server() as running, running.database() as url:
        file, other = Database("sqlite", str(Path(folder) / "ledger.db")), Database("postgresql", url)
        for database in (file, other):
            migrate(database.url)
        reads = asyncio.run(_fill_and_read(file))
        kept.write(HEAD, {one.kind: kept.digest_of(one) for one in (file, other)}, rows_of(file), reads)


async def _fill_and_read(database: Database) -> Reads:
    async with opened(database.url) as ledgers:
        await fill(ledgers)
        return dumped(await read(ledgers))


def rows_of(database: Database) -> list[kept.Table]:
    with closing(sqlite3.connect(database.url)) as connection:
        tables = []
        for table in sorted(table.name for table in INSERTION_ORDER):
            found = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
            tables.append((table, [column[0] for column in found.description], [list(row) for row in found]))
    return tables


if __name__ == "__main__":
    main()
