"""Import of 20,000 messages from a file of records, beside the same rows by the driver's quickest way.

Ours reads JSON, decodes it, judges it by the rules and makes the rows, and it collects garbage as rarely as the command
line does. The bare contenders are given rows that are made already, the very rows that ours stored. Each import goes
into empty tables. Ours then imports the file again, finds each message stored, and stores nothing.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from benchmarks.cases import OURS, Extent
from benchmarks.measure import Sample, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, milliseconds, show_ratio
from benchmarks.turns import BareMessage, turns
from chatledger import Ledger
from chatledger.cli.collection import collected_rarely
from chatledger.storage.drivers.urls import sqlite_pragmas
from chatledger.storage.repositories.bulk import _COLUMNS as COLUMNS
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions

MESSAGES = 20_000
RECORDS = 400
FIRST, AGAIN = Target(0.45, at_least=True), Target(0.5)
"""Of the rate of rows made already, and of the time of the first import."""

Rows = Mapping[str, Sequence[tuple[Any, ...]]]


class Importer(Protocol):
    async def empty(self, number: int) -> None: ...

    async def run(self, number: int) -> None: ...


class OurImport(Importer, Protocol):
    async def again(self, number: int) -> None:
        """Import what `run` has imported."""
        ...


def records() -> bytes:
    """A JSON array of conversations in the shape of OpenAI's chat completions."""
    stock = turns()
    each = MESSAGES // RECORDS // len(stock[0].bare)
    found = []
    for number in range(RECORDS):
        own = [stock[(number * each + at) % len(stock)] for at in range(each)]
        found.append({"id": f"record {number}", "messages": [_openai(one) for turn in own for one in turn.bare]})
    return json.dumps(found).encode()


def _openai(message: BareMessage) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


async def import_rows(bare: tuple[str, Importer], ours: OurImport, extent: Extent, *, label: str) -> list[Row]:
    say(f"{label}import")
    reference, importer = bare
    samples = await race(
        {reference: importer.run, OURS: ours.run, "again": ours.again},
        extent.imports,
        prepare={reference: importer.empty, OURS: ours.empty},
    )
    case = f"{label}import of {MESSAGES:,} messages"
    again = samples["again"].ratio(samples[OURS])
    first = samples[reference].ratio(samples[OURS])
    return [
        Row(case, reference, *_speed(samples[reference]), ratio="1"),
        Row(
            case,
            OURS,
            *_speed(samples[OURS]),
            ratio=show_ratio(first),
            target=None if label else FIRST,
            judged=first.value,
        ),
        Row(
            f"{label}import again, nothing new",
            "time of the first import",
            *_speed(samples["again"]),
            ratio=show_ratio(again),
            target=None if label else AGAIN,
            judged=again.value,
        ),
    ]


def _speed(sample: Sample) -> tuple[str, str, str]:
    """Messages a second; the ratio beside it is one of speeds, so that 1 is as fast as the reference."""
    return f"{MESSAGES / sample.median:,.0f}/s", milliseconds(sample.percentile(95)), f"{sample.spread:.0%}"


async def _import(ledger: Ledger, content: bytes, *, stores: int) -> None:
    with collected_rarely():
        report = await import_file(ledger, io.BytesIO(content), ImportOptions(id_field="id"), file="records.json")
    if report.messages != stores:
        raise RuntimeError(f"{report.messages} messages of {stores} were imported")


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


class Emptied:
    """Tables of a PostgreSQL database, emptied and written out before each import."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def empty(self, _number: int) -> None:
        await self.connection.execute("TRUNCATE chatledger.threads CASCADE")
        await self.connection.execute("CHECKPOINT")


class BareCopy(Emptied):
    name = "asyncpg COPY, rows made already"

    def __init__(self, connection: Any, rows: Rows) -> None:
        super().__init__(connection)
        self._rows = rows

    async def run(self, _number: int) -> None:
        async with self.connection.transaction():
            for table, rows in self._rows.items():
                await self.connection.copy_records_to_table(
                    table, schema_name="chatledger", columns=COLUMNS[table], records=rows
                )


class PostgresImport(Emptied):
    def __init__(self, connection: Any, ledger: Ledger, content: bytes) -> None:
        super().__init__(connection)
        self._ledger, self._content = ledger, content

    async def run(self, _number: int) -> None:
        await _import(self._ledger, self._content, stores=MESSAGES)

    async def again(self, _number: int) -> None:
        await _import(self._ledger, self._content, stores=0)


async def postgres_import_rows(url: str, extent: Extent, *, label: str = "") -> list[Row]:
    connection = await asyncpg.connect(url)
    try:
        async with Ledger.open(url) as ledger:
            ours = PostgresImport(connection, ledger, records())
            await ours.empty(0)
            await ours.run(0)
            bare = BareCopy(connection, await _stored(connection))
            return await import_rows((BareCopy.name, bare), ours, extent, label=label)
    finally:
        await connection.close()


async def _stored(connection: Any) -> Rows:
    found = {
        table: await connection.fetch(f"SELECT {', '.join(columns)} FROM chatledger.{table}")
        for table, columns in COLUMNS.items()
    }
    return {table: [tuple(row) for row in rows] for table, rows in found.items()}


# --- SQLite -----------------------------------------------------------------------------------------------------------


class FreshFile:
    """A new file for each import; the one before is removed."""

    def __init__(self, empty: Path, path: Path) -> None:
        self._template, self.path = empty, path

    def renew(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(self._template, self.path)


class BareExecutemany(FreshFile):
    name = "sqlite3 executemany, rows made already"

    def __init__(self, empty: Path, path: Path, rows: Rows) -> None:
        super().__init__(empty, path)
        self._rows = rows
        self._connection: sqlite3.Connection | None = None

    async def empty(self, _number: int) -> None:
        self.close()
        self.renew()
        self._connection = sqlite3.connect(self.path, isolation_level=None)
        for pragma in sqlite_pragmas():
            self._connection.execute(pragma)

    async def run(self, _number: int) -> None:
        assert self._connection is not None
        self._connection.execute("BEGIN IMMEDIATE")
        for table, rows in self._rows.items():
            columns = COLUMNS[table]
            marks = ", ".join("?" * len(columns))
            self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class SqliteImport(FreshFile):
    def __init__(self, empty: Path, path: Path, content: bytes) -> None:
        super().__init__(empty, path)
        self._content = content
        self._ledger: Ledger | None = None

    async def empty(self, _number: int) -> None:
        await self.close()
        self.renew()
        self._ledger = await Ledger.open(self.path)
        await self._ledger.threads.list(limit=1)

    async def run(self, _number: int) -> None:
        assert self._ledger is not None
        await _import(self._ledger, self._content, stores=MESSAGES)

    async def again(self, _number: int) -> None:
        assert self._ledger is not None
        await _import(self._ledger, self._content, stores=0)

    async def close(self) -> None:
        if self._ledger is not None:
            await self._ledger.close()


async def sqlite_import_rows(empty: Path, folder: Path, extent: Extent) -> list[Row]:
    ours = SqliteImport(empty, folder / "imported.db", records())
    await ours.empty(0)
    await ours.run(0)
    await ours.close()
    bare = BareExecutemany(empty, folder / "loaded.db", _read(ours.path))
    try:
        return await import_rows((BareExecutemany.name, bare), ours, extent, label="")
    finally:
        bare.close()
        await ours.close()


def _read(path: Path) -> Rows:
    connection = sqlite3.connect(path)
    try:
        return {
            table: connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            for table, columns in COLUMNS.items()
        }
    finally:
        connection.close()
