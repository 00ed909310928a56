"""`sql`: run a statement that only reads, and print its rows."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, Tenant, Url, require_database, run
from chatledger.cli.output import plural, print_table

TABLE_ROWS = 100


def add_to(app: typer.Typer) -> None:
    app.command("sql")(sql)


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="SELECT", help="One statement that reads; - reads it from stdin.")
    ],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV, with a line of column names.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=1, help="Maximum number of rows to print.", show_default="100 in a table"
        ),
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a SQL statement that only reads, and print its rows.

    The statement can read the views that `chatledger schema --views` explains, and the tables below them, of all
    tenants. It cannot write: a statement that does is refused, and the exit code is 3. --csv and --json print each row
    as it arrives, so a result may be larger than memory.

    Example: chatledger sql "SELECT day, sum(cost) FROM usage_by_day GROUP BY day ORDER BY day" --csv
    """

    def command() -> int:
        if as_csv and as_json:
            raise UsageError("give --csv or --json, not both")
        text = sys.stdin.read() if statement == "-" else statement
        printer = _Csv(limit) if as_csv else _Json(limit) if as_json else _TablePrinter(limit or TABLE_ROWS)
        require_database(url)
        _read(url, tenant, text, printer)
        printer.end()
        return ExitCode.OK

    run(command, debug=debug)


def _read(url: str | None, tenant: str, statement: str, printer: _Printer) -> None:
    from chatledger.storage.databases.read_only import read_postgresql, read_sqlite
    from chatledger.storage.drivers.urls import read_url
    from chatledger.storage.schema.tables import SCHEMA

    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        read_sqlite(address, statement, printer.take)
    else:
        asyncio.run(read_postgresql(address, SCHEMA, tenant, statement, printer.take))


class _Printer:
    """Prints the rows of a statement. The first call of `take` has the columns and no row."""

    def __init__(self, limit: int | None) -> None:
        self.columns: Sequence[str] = ()
        self.count = 0
        self.cut = False
        self._limit = limit

    def take(self, columns: Sequence[str], row: Sequence[Any]) -> bool:
        if not self.columns:
            self.columns = columns
            self.begin()
            return True
        if self.count == self._limit:
            self.cut = True
            return False
        self.row([_plain(value) for value in row])
        self.count += 1
        return True

    def begin(self) -> None: ...

    def row(self, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def end(self) -> None: ...


class _TablePrinter(_Printer):
    def begin(self) -> None:
        self._rows: list[Sequence[Any]] = []

    def row(self, values: Sequence[Any]) -> None:
        self._rows.append(["NULL" if value is None else value for value in values])

    def end(self) -> None:
        print_table(self.columns, self._rows)
        if self.cut:
            say(f"the first {plural(self.count, 'row')}; --limit N prints more, --csv and --json print all")
        else:
            say(plural(self.count, "row"))


class _Csv(_Printer):
    def begin(self) -> None:
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._writer.writerow(self.columns)

    def row(self, values: Sequence[Any]) -> None:
        self._writer.writerow(values)


class _Json(_Printer):
    def begin(self) -> None:
        sys.stdout.write('{"items": [')

    def row(self, values: Sequence[Any]) -> None:
        item = {name: _json(value) for name, value in zip(self.columns, values, strict=True)}
        sys.stdout.write(("," if self.count else "") + "\n  " + json.dumps(item, ensure_ascii=not _is_unicode()))

    def end(self) -> None:
        sys.stdout.write('\n], "next_cursor": null}\n')


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _plain(value: Any) -> Any:
    """A value as both databases show it: PostgreSQL's times and days as the text that SQLite has."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, (str, int, float, Decimal)):
        return value
    return str(value)


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return str(value)  # JSON has no NaN and no infinity
    return value
