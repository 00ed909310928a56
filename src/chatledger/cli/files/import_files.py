"""`import`: store the conversations of files or of a framework's database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from chatledger.cli.collection import collected_rarely
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import (
    Debug,
    Json,
    Tenant,
    Url,
    file_path,
    open_ledger,
    require_files,
    require_keys,
    require_one,
    run_async,
)
from chatledger.cli.output import plural, print_json
from chatledger.cli.progress import byte_bar, share_bar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from chatledger.errors import UnknownFormat
    from chatledger.ledger import Opening
    from chatledger.transfer.import_other_store import StoreOptions
    from chatledger.transfer.plan import ImportOptions
    from chatledger.transfer.report import FailedRecord, ImportReport

LINE_SUFFIXES = (".jsonl", ".ndjson")
SHOWN_FAILURES = 20
SHOWN_ERASED = 3


def add_to(app: typer.Typer) -> None:
    app.command("import")(import_files)


def _option(name: str, text: str, default: str | bool = False) -> Any:
    return typer.Option(name, metavar="PATH", help=text, show_default=default)


def import_files(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="File of JSON or JSON lines; - reads standard input.")
    ] = None,
    field: Annotated[
        str | None,
        _option(
            "--field", "Field that holds a record's messages, such as data.turns.", "the usual field of the format"
        ),
    ] = None,
    id_field: Annotated[
        str | None,
        _option("--id-field", "Field that identifies a record, so that a later import can add to its thread."),
    ] = None,
    thread_field: Annotated[
        str | None, _option("--thread-field", "Field whose value becomes the thread's id, unchanged.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="Name by which a later import of FILE finds its records, without a field that identifies them.",
            show_default="the file's name",
        ),
    ] = None,
    time_field: Annotated[
        str | None,
        _option(
            "--time-field",
            "Field with the time of a record or message: ISO 8601 with a zone, or seconds or milliseconds since 1970.",
            "the time of the import",
        ),
    ] = None,
    user_field: Annotated[str | None, _option("--user-field", "Field with the id of the thread's owner.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="URL", help="Import from a framework's database, not from files; needs --store."
        ),
    ] = None,
    store: Annotated[
        Literal["openai-agents", "langchain", "adk"] | None,
        typer.Option("--store", help="Framework that wrote the database of --from."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="Table of the framework's messages.",
            show_default="the framework's usual table",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="USER",
            help="Owner of the imported threads. Not for adk, whose sessions name their users.",
            show_default="no owner",
        ),
    ] = None,
    session: Annotated[
        list[str] | None,
        typer.Option(
            "--session",
            metavar="ID",
            help="Import only the session with this id. May be repeated.",
            show_default="all sessions",
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the files; `chatledger formats` lists them. auto: detect it in each record.",
        ),
    ] = "auto",
    rules: Annotated[
        Literal["lenient", "strict", "ordered"],
        typer.Option(
            "--rules",
            help="lenient: store messages that break a rule, and record the violation. strict: refuse them. ordered: "
            "also refuse what some providers refuse.",
        ),
    ] = "lenient",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the import would store, without writing.")
    ] = False,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="Stop at the first bad record or session.")
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Import conversations from files or a framework's database.

    Each record or session becomes a thread. A second import stores nothing twice. A missing SQLite database is created.

    A file is a JSON array of records, one record per line, or records one after the other. A record is a message list,
    an object with a message list, a ShareGPT record, a message tree, a trajectory or a request body. Its other keys
    become the thread's metadata. The options that end in -field take the path of a field in a record, with dots
    between the keys.

    Bad records are reported, records of erased threads are skipped, and all others are imported; the exit code is then
    1. A file of unknown format is refused as a whole.

    With --from and --store, each session in the framework's database becomes a thread, as the framework's adapter would
    write it. The framework's database is not changed.

    Example: chatledger import chats.jsonl --id-field id

    Example: chatledger import --from agent.db --store openai-agents
    """
    of_files = {"--field": field, "--id-field": id_field, "--thread-field": thread_field, "--time-field": time_field}
    of_files |= {"--source": name, "--user-field": user_field, "--format": None if format == "auto" else format}
    of_stores = {"--store": store, "--table": table, "--user": user, "--session": session}

    async def from_files() -> int:
        from chatledger.transfer.plan import ImportOptions

        options = ImportOptions(
            field=field,
            id_field=id_field,
            thread_field=thread_field,
            source=name,
            time_field=time_field,
            user_field=user_field,
            format=format,
            rules=rules,
            dry_run=dry_run,
            stop_on_error=stop_on_error,
        )
        paths = files or []
        require_files(paths)
        if name is not None and len(paths) > 1:
            raise UsageError("--source names one file; import the files one after the other")
        async with _open(url, tenant, dry_run=dry_run) as ledger:
            await require_keys(ledger)
            report = await import_paths(ledger, paths, options, quiet=as_json)
        for file, other in report.looks_like.items():
            say(f"{file}: looks like {other}, and was read as {format}, which --format names")
        if as_json:
            print_json(report.to_json() | {"dry_run": dry_run})
        else:
            _print_report(report, options, nothing_read=len(report.refused) == len(paths))
        return _code_of(report, paths)

    async def from_store() -> int:
        from chatledger.transfer.import_other_store import StoreOptions, import_other_store, open_store

        if source is None or store is None:
            raise UsageError("give --from and --store together: the database, and the framework that wrote it")
        options = StoreOptions(
            store=store,
            table=table,
            user_id=user,
            sessions=session or (),
            rules=rules,
            dry_run=dry_run,
            stop_on_error=stop_on_error,
        )
        async with open_store(source, options) as opened, _open(url, tenant, dry_run=dry_run) as ledger:
            await require_keys(ledger)
            with share_bar("importing", quiet=as_json) as on_session:
                report = await import_other_store(ledger, opened, options, on_session=on_session)
        if as_json:
            print_json(report.to_json() | {"dry_run": dry_run})
        else:
            _print_sessions(report, options)
        return _code_of(report, [source])

    async def command() -> int:
        is_store = source is not None or store is not None
        _refuse_both(of_files if is_store else of_stores, with_="--from" if is_store else "files")
        require_one({"FILE": bool(files), "--from": is_store})
        with collected_rarely():
            return await (from_store() if is_store else from_files())

    run_async(command, debug=debug)


def _refuse_both(others: dict[str, Any], *, with_: str) -> None:
    """Raises UsageError for an option of the other kind of source."""
    for name, value in others.items():
        if value:
            raise UsageError(f"{name} does not go with {with_}; leave one of them out")


async def import_paths(ledger: Any, files: Sequence[str], options: ImportOptions, *, quiet: bool) -> ImportReport:
    """Import all files into one report. The progress bar counts the bytes of all files.

    A file of unknown format is reported, and the others are imported. Raises UnknownFormat for an unknown format name.
    """
    from chatledger.errors import UnknownFormat
    from chatledger.transfer.import_file import import_file
    from chatledger.transfer.report import ImportReport

    report = ImportReport()
    sizes = [_size(file) for file in files]
    with byte_bar(sum(sizes) or None, quiet=quiet) as advance:
        for number, file in enumerate(files):
            with open_input(file) as stream:
                lines = file.endswith(LINE_SUFFIXES)
                on_bytes = _from(sum(sizes[:number]), Path(file).name, advance)
                try:
                    await import_file(
                        ledger, stream, options, file=Path(file).name, lines=lines, report=report, on_bytes=on_bytes
                    )
                except UnknownFormat as error:
                    if error.format is not None:
                        raise
                    report.refused.append(error)
                    report.stopped = options.stop_on_error
            if report.stopped:
                break
    return report


def _from(done: int, name: str, advance: Callable[[str, int], None]) -> Callable[[int], None]:
    return lambda byte: advance(name, done + byte)


def _size(file: str) -> int:
    return 0 if file == "-" else Path(file).stat().st_size


def open_input(file: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb")


def _open(url: str | None, tenant: str, *, dry_run: bool) -> Opening:
    """Open the ledger. A dry run creates no file; without one, it imports into memory."""
    path = file_path(url)
    if dry_run and path is not None and not Path(path).exists():
        return open_ledger(":memory:", tenant)
    return open_ledger(url, tenant, create=not dry_run)


def _code_of(report: ImportReport, files: Sequence[str]) -> ExitCode:
    if len(report.refused) == len(files):
        return ExitCode.FAILED
    return ExitCode.FOUND if report.failed or report.refused or report.erased else ExitCode.OK


def say_unknown(unknown: Sequence[UnknownFormat], *, option: str) -> None:
    """Report each file of unknown format, and then once the options that help."""
    from chatledger.transfer.shapes import shape_names

    for error in unknown:
        say(str(error))
    if unknown:
        say(f"--field names the field of the messages, {option} their format: {', '.join(shape_names())}")


def _print_report(report: ImportReport, options: ImportOptions, *, nothing_read: bool) -> None:
    from chatledger.transfer.shapes import AUTO

    say_unknown(report.refused, option="--format")
    if nothing_read:
        return
    _say_failures(report, "record")
    for file, thread_id in report.twins.items():
        say(
            f"{file}: its first record is already stored as thread {thread_id}, whose id came from another field; give "
            "the same --id-field or --thread-field each time you import a file"
        )
    if options.format == AUTO:
        for line in _read_as(report):
            print(line)
    print("\n".join(describe(report, time_field=options.time_field, dry_run=options.dry_run)))


def _print_sessions(report: ImportReport, options: StoreOptions) -> None:
    _say_failures(report, "session")
    print("\n".join(_counted(report, "session", dry_run=options.dry_run)))
    if report.without_time:
        print(f"{plural(report.without_time, 'session')} without times got the current time")


def _say_failures(report: ImportReport, unit: str) -> None:
    """`unit` is the word for the source of a thread: record or session."""
    for line in failure_lines(report.failures, unit):
        say(line)
    for erased in report.erased[:SHOWN_ERASED]:
        say(f"{erased}; skipped")
    if len(report.erased) > SHOWN_ERASED:
        say(f"… and {len(report.erased) - SHOWN_ERASED:,} more {unit}s of erased threads; --json lists them all")
    for name in report.empty:
        say(f"{name}: contains no {unit}s")
    if report.stopped:
        say(f"stopped at the first bad {unit}; the {unit}s before it are stored")


def _read_as(report: ImportReport) -> list[str]:
    """The formats that `auto` detected, one line per file."""
    return [
        f"{file}: read as " + ", ".join(f"{name} ({count:,})" for name, count in counts.items())
        for file, counts in report.read_as.items()
        if counts
    ]


def failure_lines(failures: Sequence[FailedRecord], unit: str = "record") -> list[str]:
    """One line per problem, with the first record that has it: a wrong --field fails every record in the same way."""
    by_problem: dict[str, list[FailedRecord]] = {}
    for failure in failures:
        by_problem.setdefault(failure.problem, []).append(failure)
    lines = [
        str(same[0]) + (f" (and {len(same) - 1:,} more {unit}{'s' if len(same) > 2 else ''})" if len(same) > 1 else "")
        for same in by_problem.values()
    ]
    more = len(lines) - SHOWN_FAILURES
    return lines[:SHOWN_FAILURES] + ([f"… and {more:,} more problems; --json lists them all"] if more > 0 else [])


def describe(report: ImportReport, *, time_field: str | None = None, dry_run: bool = False) -> list[str]:
    """The report as a few lines of text."""
    return _counted(report, "record", dry_run=dry_run) + _times(report, time_field)


def _counted(report: ImportReport, unit: str, *, dry_run: bool) -> list[str]:
    names = ("created", "grown", "unchanged")
    counts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    threads = plural(report.threads, "thread") + (f" ({', '.join(counts)})" if counts else "")
    done = "to store" if dry_run else "stored"
    values = f" and {plural(report.values, 'value')} of shared state" if report.values else ""
    messages = f"{plural(report.messages, 'message')}{values} {done}"
    failed = [f"{plural(report.failed, unit)} failed"] if report.failed else []
    erased = [f"{plural(len(report.erased), unit)} skipped (erased)"] if report.erased else []
    lines = [("dry run, nothing is written: " if dry_run else "") + ", ".join([threads, messages, *failed, *erased])]
    for what, counted in (("kept with a violation", report.violations), ("lost", report.losses)):
        if counted:
            lines.append(f"{what}: " + ", ".join(f"{name} × {count:,}" for name, count in sorted(counted.items())))
    return lines


def _times(report: ImportReport, time_field: str | None) -> list[str]:
    """Report records that got the time of the import, which a reader could mistake for a time from the file."""
    if not report.without_time or not report.created + report.grown:
        return []
    if time_field is None:
        return [
            f"{plural(report.without_time, 'record')} without a time got the current time; --time-field names its field"
        ]
    return [f"{plural(report.without_time, 'record')} without a time in {time_field!r} got the current time"]
