"""`copy`: copy everything of a database, or of one tenant, to another one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.collection import collected_rarely
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, run
from chatledger.cli.output import print_json, print_table
from chatledger.cli.progress import share_bar

if TYPE_CHECKING:
    from chatledger.types import CopyReport


def add_to(app: typer.Typer) -> None:
    app.command("copy")(copy)


def copy(
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="URL", envvar="CHATLEDGER_FROM", help="The database to read. It is never written."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="URL", envvar="CHATLEDGER_TO", help="The database to fill: a new or an empty one at first."
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="TENANT", help="Copy this tenant only.", show_default="all tenants"),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Write nothing: compare both databases.")] = False,
    done: Annotated[
        bool, typer.Option("--done", help="Verify, and if both agree, open the target for all writers.")
    ] = False,
    without_verify: Annotated[
        bool, typer.Option("--without-verify", help="With --done: do not compare both databases first.")
    ] = False,
    keep_open_runs: Annotated[
        bool,
        typer.Option(
            "--keep-open-runs",
            help="Leave open runs open, instead of cancelled. Give it with each pass and with --done.",
        ),
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Copy a source without threads over a target that has some.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy a database to another one, between SQLite and PostgreSQL.

    Copies everything of all tenants, encrypted or not: branches, runs, scores, values and times too. The source may
    stay in use. Run it again to bring what changed since, and after an interruption. Until --done, nobody else writes
    to the target. The password of a PostgreSQL URL may come from PGPASSWORD or from ~/.pgpass.

    Example: chatledger copy --from chatledger.db --to postgresql://app@db.example/chat
    """

    def command() -> int:
        if source is None or target is None:
            raise UsageError(f"give {'--to' if source else '--from'} URL")
        if without_verify and (verify or not done):
            raise UsageError("--without-verify goes with --done, and without --verify")
        import chatledger.admin

        with share_bar("comparing" if verify or done else "copying", quiet=as_json) as progress:
            work = chatledger.admin.copy(
                source,
                target,
                tenant=tenant,
                verify=verify or (done and not without_verify),
                done=done,
                keep_open_runs=keep_open_runs,
                allow_empty=allow_empty,
                progress=progress,
            )
            with collected_rarely():
                report = asyncio.run(work)
        if as_json:
            print_json(report.model_dump())
        else:
            _print(report, compared=verify or (done and not without_verify), writes=not (verify or done))
        return ExitCode.FOUND if report.differences else ExitCode.OK

    run(command, debug=debug)


def _print(report: CopyReport, *, compared: bool, writes: bool) -> None:
    if any(report.rows.values()):
        print_table(("table", "rows copied"), [(table, f"{count:,}") for table, count in report.rows.items() if count])
    if writes:
        say(f"{report.copied:,} of {report.threads:,} threads copied, {report.removed:,} removed")
    for difference in report.differences:
        print(f"differs: {difference}")
    left_out = sum(report.left_out.values())
    if left_out:
        say(f"{left_out:,} rows are not copied, because tombstones name them")
    if compared and not report.differences:
        say(f"both databases agree: {report.threads:,} threads")
    if writes:
        say("the target is read-only until the same command runs with --done")
    if report.ended:
        say("the copy is complete: the target is open for all writers")
    elif compared and report.differences:
        say("the databases differ: copy again")
