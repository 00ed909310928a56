"""Keep the newest schema with rows, as both databases hold it today. Run it once, when a release is made:

    python -m tests.migrations.released.dump

It writes, for each database, `<revision>.<database>.sql`, and what the ledger reads there as a `.json` beside it. Files
of earlier releases are history and never written again.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import Table

from chatledger import KeyRing, Ledger
from chatledger.admin import migrate, offline_sql
from chatledger.storage.schema.tables import INSERTION_ORDER, SCHEMA
from chatledger.storage.upgrade.versions import HEAD
from tests.conftest import Database
from tests.migrations.access import fetch
from tests.migrations.released.content import dumped, fill, read
from tests.postgres import server


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        keep(Database("sqlite", str(Path(folder) / "ledger.db")))
    with server() as running, running.database() as url:
        keep(Database("postgresql", url))


def keep(database: Database) -> None:
    migrate(database.url)
    content = asyncio.run(_fill_and_read(database))
    script = sqlite_script(database) if database.kind == "sqlite" else postgresql_script(database)
    target = Path(__file__).parent / f"{HEAD}.{database.kind}"
    target.with_suffix(f".{database.kind}.sql").write_text(script)
    target.with_suffix(f".{database.kind}.json").write_text(content)


async def _fill_and_read(database: Database) -> str:
    keys = KeyRing({"1": b"k" * 32}, current="1")
    async with Ledger.open(database.url, tenant="sealed", encryption=keys) as sealed:  # so that a tenant is encrypted
        await sealed.threads.create("sealed", title="Sealed")
    async with Ledger.open(database.url) as ledger:
        await fill(ledger)
        return json.dumps(dumped(await read(ledger)), indent=1, default=str) + "\n"


def sqlite_script(database: Database) -> str:
    with closing(sqlite3.connect(database.url)) as connection:
        return "\n".join(connection.iterdump()) + "\n"


def postgresql_script(database: Database) -> str:
    """The statements of the migrations, then the rows: needs no binary, and nothing that another server lacks."""
    rows = [line for table in INSERTION_ORDER for line in _inserts(database, table)]
    return offline_sql(database.url, to=HEAD) + "\n".join(rows) + "\n"


def _inserts(database: Database, table: Table) -> list[str]:
    name = f"{SCHEMA}.{table.name}"
    columns = [f'"{column.name}"' for column in table.c]
    values = " || ', ' || ".join(f"quote_nullable({column}::text)" for column in columns)
    rows = fetch(database, f"SELECT {values} FROM {name} ORDER BY 1")
    return [f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({row[0]});" for row in rows]


if __name__ == "__main__":
    main()
