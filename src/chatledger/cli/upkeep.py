"""`migrate` and `schema`, behind the full door."""

from __future__ import annotations

from typing import Annotated

import typer

from chatledger.cli import schema as schema_commands
from chatledger.cli.options import Debug, Json, Tenant, Url, run
from chatledger.cli.progress import working


def add_to(app: typer.Typer) -> None:
    app.command("migrate")(migrate)
    app.command("schema")(schema)


def migrate(
    to: Annotated[str, typer.Option("--to", metavar="REV", help="A revision, head or base, which drops all.")] = "head",
    sql: Annotated[bool, typer.Option("--sql", help="Print the statements instead of running them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Drop every table, with --to base.")] = False,
    rls: Annotated[
        bool | None, typer.Option("--rls/--no-rls", help="Switch PostgreSQL's row-level security on or off as well.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Bring a database to this release's schema, or to another revision."""

    sign = working("migrating", quiet=as_json)
    run(lambda: schema_commands.migrate(url, to=to, sql=sql, yes=yes, as_json=as_json, rls=rls, sign=sign), debug=debug)


def schema(url: Url = None, tenant: Tenant = "default", as_json: Json = False, debug: Debug = False) -> None:
    """Say which schema revision a database is at, and which this release needs; exit code 1 if they do not fit."""
    run(lambda: schema_commands.schema(url, as_json=as_json), debug=debug)
