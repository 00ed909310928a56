"""`migrate` and `schema`: change a database's schema, or compare it with the one that this release needs."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, Tenant, Url, naming_database, place_of, run
from chatledger.cli.output import print_list, print_table
from chatledger.cli.progress import working

if TYPE_CHECKING:
    from chatledger.storage.schema.view_columns import View
    from chatledger.storage.upgrade.versions import SchemaStatus


def add_to(app: typer.Typer) -> None:
    app.command("migrate")(migrate)
    app.command("schema")(schema)


def migrate(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="REV",
            help="Revision to migrate to: head, one such as 0004, or base, which drops all tables.",
        ),
    ] = "head",
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL statements instead of running them.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Discard what an older revision has no place for; base drops all tables.")
    ] = False,
    discard_tombstones: Annotated[
        bool, typer.Option("--discard-tombstones", help="Also discard the tombstones of erasures.")
    ] = False,
    rls: Annotated[
        bool | None,
        typer.Option(
            "--rls/--no-rls",
            help="Also switch PostgreSQL's row-level security on or off.",
            show_default="leave it as it is",
        ),
    ] = None,
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="Also distribute the tables over Citus that are not distributed yet."),
    ] = False,
    encrypted: Annotated[
        bool,
        typer.Option("--encrypted", help="Also record that the database is encrypted: nothing is stored without keys."),
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Migrate a database to this release's schema.

    Creates the tables in a new database. Back up the database first.

    Example: chatledger migrate --url postgresql://app@db.example/chat
    """

    def command() -> int:
        import chatledger
        import chatledger.admin
        from chatledger.errors import StorageError
        from chatledger.storage.schema.distribution import LocalRows

        _check_options(to, sql=sql, yes=yes, rls=rls, distributed=distributed)
        if encrypted and (sql or to != "head"):
            raise UsageError("--encrypted needs the newest tables of a database; leave out --sql and --to")
        if sql:
            print(chatledger.admin.offline_sql(url, to=to), end="")
            return ExitCode.OK
        try:
            with naming_database(url, StorageError), working("migrating", quiet=as_json):
                status = chatledger.admin.migrate(
                    url,
                    to=to,
                    rls=rls,
                    distributed=distributed,
                    encrypted=encrypted,
                    discard=yes,
                    discard_tombstones=discard_tombstones,
                )
        except LocalRows as error:
            say(error.because)
            print(json.dumps({"statements": error.statements}) if as_json else "\n".join(error.statements))
            return ExitCode.FOUND
        if as_json:
            print(_as_json(status))
        else:
            print(f"{place_of(url)} is at schema {status.found or 'none'}{_security(status)}")
            _print_local(status)
        return ExitCode.OK

    run(command, debug=debug)


def schema(
    views: Annotated[
        bool, typer.Option("--views", help="Explain the views and their columns instead; no database is needed.")
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the schema revision of a database and the one needed.

    The exit code is 1 if this release cannot use the database as it is.
    """

    def command() -> int:
        if views:
            return _explain_views(as_json=as_json)
        import chatledger
        import chatledger.admin
        from chatledger.errors import StorageError

        with naming_database(url, StorageError):
            status = chatledger.admin.schema_status(url)
        if as_json:
            print(_as_json(status))
        else:
            revisions = f"found {status.found or 'none'}, expected {status.expected}"
            print(f"{place_of(url)}: {revisions}{_security(status)}", end="")
            print("" if status.usable else f"; run: chatledger migrate --url {shlex.quote(place_of(url))}")
            _print_local(status)
        return ExitCode.OK if status.usable else ExitCode.FOUND

    run(command, debug=debug)


def _explain_views(*, as_json: bool) -> int:
    from chatledger.storage.schema.view_columns import VIEW_COLUMNS

    if as_json:
        print_list([_as_item(name, view) for name, view in VIEW_COLUMNS.items()])
        return ExitCode.OK
    for name, view in VIEW_COLUMNS.items():
        print(f"{name}: {view.meaning}\n")
        rows = [(column.name, column.type.sqlite, column.type.postgresql, column.meaning) for column in view.columns]
        print_table(("column", "sqlite", "postgresql", "meaning"), rows)
        print()
    return ExitCode.OK


def _as_item(name: str, view: View) -> dict[str, object]:
    columns = [{"name": column.name, **column.type._asdict(), "meaning": column.meaning} for column in view.columns]
    return {"view": name, "meaning": view.meaning, "columns": columns}


def _check_options(to: str, *, sql: bool, yes: bool, rls: bool | None, distributed: bool) -> None:
    if to not in ("head", "base") and not to.isdigit():
        raise UsageError(f"--to takes a revision such as 0001, head or base, not {to!r}")
    if to == "base" and not (sql or yes):
        raise UsageError("--to base drops all tables, with the data of every tenant; add --yes to confirm it")
    if rls is not None and (sql or to == "base"):
        raise UsageError("--rls and --no-rls need the tables of a database; leave out --sql and --to base")
    if distributed and (sql or to == "base"):
        raise UsageError("--distributed needs the tables of a database; leave out --sql and --to base")


def _as_json(status: SchemaStatus) -> str:
    report = {"found": status.found, "expected": status.expected, "usable": status.usable, "rls": status.rls}
    return json.dumps({**report, "encrypted": status.encrypted, "local_tables": status.local_tables})


def _print_local(status: SchemaStatus) -> None:
    if status.local_tables:
        print(f"not distributed: {', '.join(status.local_tables)}; run: chatledger migrate --distributed")


def _security(status: SchemaStatus) -> str:
    return (", with row-level security" if status.rls else "") + (", encrypted" if status.encrypted else "")
