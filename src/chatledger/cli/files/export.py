"""`export`: write threads as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.conversations.threads import say_damaged, thread_id_of
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.files.left_out import say_left_out
from chatledger.cli.files.parquet import Filters, write_frames
from chatledger.cli.options import (
    THREAD_HELP,
    Debug,
    Json,
    Latest,
    Output,
    Tenant,
    Url,
    require_folder,
    require_one,
    seen_by,
    time_option,
    with_ledger,
)
from chatledger.cli.output import moment, plural
from chatledger.cli.progress import count_bar, working
from chatledger.cli.remarks import SHOWN, Remarks

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.transfer.export import Index


def add_to(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Export all threads, in order of import, then of creation.")
    ] = False,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the messages; `chatledger formats` lists them.",
            show_default="as imported, else openai-chat",
        ),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Write training data: one {"messages": […]} per line, without other keys.')
    ] = False,
    view: Annotated[
        Literal["stored", "model"],
        typer.Option(
            "--view",
            help="With --jsonl: messages as stored, or repaired so that the format's provider accepts them.",
        ),
    ] = "stored",
    min_score: Annotated[
        list[str] | None,
        typer.Option(
            "--min-score",
            metavar="KEY=SCORE",
            help="Export only threads whose mean score for KEY is at least SCORE. May be repeated.",
        ),
    ] = None,
    container: Annotated[
        Literal["auto", "array", "lines"],
        typer.Option(
            "--container",
            help="With --all: write a JSON array, or one record per line. auto: an array if all threads were imported "
            "from arrays, else lines.",
        ),
    ] = "auto",
    parquet: Annotated[
        str | None,
        typer.Option(
            "--parquet",
            metavar="DIR",
            help="Write messages.parquet, calls.parquet, runs.parquet and scores.parquet into a folder instead.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Export only the threads of this user.")
    ] = None,
    since: Annotated[
        datetime | None,
        time_option("--since", "Only threads active at or after this time; with --parquet, only rows of that time."),
    ] = None,
    until: Annotated[datetime | None, time_option("--until", "The same for before this time.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Only threads with a run of this model; with --parquet, rows."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="Only threads with a run of this agent; with --parquet, rows."),
    ] = None,
    output: Output = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export one thread or all threads as JSON.

    An imported thread is exported as its original record, with the messages added since. Any other thread is exported
    as its messages, or with --all as a record of thread_id, title, user_id, created_at, metadata and messages. Damaged
    threads are reported and left out, and the exit code is 1.

    An export holds messages: runs, scores, values and, in most formats, all branches but the active one are left out,
    and their number is printed on stderr. It is no copy of a ledger.

    --jsonl exports training data instead, from all threads unless you name one. --min-score compares the mean of the
    scores that `feedback summary --thread` counts, and leaves out threads without a score. With --view model, a thread
    with nothing to send is reported and left out, and the exit code is 1.

    --user, --since, --until, --model and --agent choose among all threads, so --all may be left out. --parquet writes
    rows for data frames, DuckDB and Polars, decrypted; only other branches and values are left out. It needs the extra
    frames.

    Example: chatledger export --jsonl --min-score stars=4 -o train.jsonl
    """

    async def work(ledger: Ledger) -> int:
        from chatledger.transfer.export import count_left_out

        is_one = thread is not None or latest
        filters = Filters(user, since, until, model, agent)
        if parquet is not None:
            other = is_one or jsonl or output is not None or format is not None or view != "stored" or bool(min_score)
            if other or container != "auto":
                raise UsageError("--parquet goes with --user, --since, --until, --model and --agent only")
            return await write_frames(ledger, parquet, filters, as_json=as_json)
        if is_one and filters.are_set:
            raise UsageError("filters choose among all threads; they do not go with THREAD or --latest")
        several = everything or (jsonl and not is_one) or filters.are_set
        require_one({"THREAD": thread is not None, "--latest": latest, "--all": several})
        if view != "stored" and not jsonl:
            raise UsageError("--view needs --jsonl; chatledger prompt prints what the model is sent of a thread")
        minima = dict(map(_minimum, min_score or ()))
        if is_one and minima:
            raise UsageError("--min-score chooses among all threads; leave it out, or THREAD and --latest")
        require_folder(output)
        _require_format(format)
        chosen = await thread_id_of(ledger, thread, latest=latest) if is_one else None
        with open_output(output) as write:
            if chosen is not None and not jsonl:
                report = await _export_one(ledger, write, chosen, format)
            else:
                index = await _index(ledger, chosen, minima, filters)
                if not index.thread_ids and not index.damaged:
                    say(_none_of(await ledger.threads.count(archived=None), minima, filters))
                report = await _export_many(
                    ledger, write, index, format, "lines" if jsonl else container, view if jsonl else None
                )
            left_out = await count_left_out(
                ledger, report.exported, shared=everything and not (filters.are_set or minima)
            )
        say_left_out(left_out)
        return report.print()

    with_ledger(url, tenant, work, debug=debug)


def _require_format(name: str | None) -> None:
    """Raises UnknownFormat for an unknown name, even if there is no thread to export."""
    from chatledger.transfer.shapes import get_shape

    if name is not None:
        get_shape(name)


def _minimum(text: str) -> tuple[str, float]:
    key, equals, score = text.rpartition("=")
    try:
        minimum = float(score)
    except ValueError:
        minimum = math.nan
    if not key or not equals or math.isnan(minimum):
        raise UsageError(f"--min-score takes KEY=SCORE, such as stars=4, not {text!r}")
    return key, minimum


@dataclass(slots=True)
class _ExportReport:
    losses: Remarks = field(default_factory=Remarks)
    repairs: int = 0
    index: Index | None = None
    exported: dict[str, bool] = field(default_factory=dict)
    """The threads in the file, and whether it has all their branches."""

    def print(self) -> ExitCode:
        if self.repairs:
            say(f"{plural(self.repairs, 'repair')} made in the model view, so that the provider accepts the messages")
        for line in self.losses.lines():
            say(line)
        if summary := self.losses.summary():
            say(summary)
        return ExitCode.OK if self.index is None else _say_missing(self.index)


def _say_missing(index: Index) -> ExitCode:
    """Report the threads that were not exported. Returns FOUND if there are any."""
    for thread_id, error in list(index.left_out.items())[:SHOWN]:
        say(f"thread {thread_id} left out: {error}")
    if index.left_out:
        say(f"{plural(len(index.left_out), 'thread')} left out")
    code = say_damaged(index.damaged)
    if index.damaged:
        say(f"{plural(len(index.damaged), 'damaged thread')} not exported")
    return ExitCode.FOUND if index.left_out else code


async def _export_one(
    ledger: Ledger, write: Callable[[str], object], thread: str, format_: str | None
) -> _ExportReport:
    from chatledger.transfer.export import export_thread
    from chatledger.transfer.record_writer import json_text

    exported = await export_thread(ledger, thread, format=format_)
    write(json_text(exported.value, indent=2) + "\n")
    report = _ExportReport()
    report.losses.add_losses(exported.losses)
    report.exported[exported.thread_id] = exported.all_branches
    return report


async def _export_many(
    ledger: Ledger,
    write: Callable[[str], object],
    index: Index,
    format_: str | None,
    container: str,
    view: Literal["stored", "model"] | None,
) -> _ExportReport:
    """Write the threads as records, or with a view as training data."""
    from chatledger.transfer.detect import DEFAULT_FORMAT
    from chatledger.transfer.export import export_all, export_conversations
    from chatledger.transfer.record_writer import RecordWriter

    as_array = index.arrays if container == "auto" else container == "array"
    writer = RecordWriter(write, "array" if as_array else "lines")
    exported = (
        export_all(ledger, index, format=format_)
        if view is None
        else export_conversations(ledger, index, format=format_ or DEFAULT_FORMAT, view=view)
    )
    report = _ExportReport(index=index)
    with count_bar("exporting", len(index.thread_ids), quiet=sys.stdout.isatty()) as advance:
        async for record in exported:
            advance()
            writer.add(record.value)
            report.losses.add_losses(record.losses, f"thread {record.thread_id}")
            report.repairs += record.repairs
            report.exported[record.thread_id] = record.all_branches
    writer.close()
    return report


async def _index(ledger: Ledger, thread: str | None, minima: Mapping[str, float], filters: Filters) -> Index:
    from chatledger.transfer.export import Index, keep_run_by, keep_scored, read_index

    if thread is not None:
        return Index([(await ledger.threads.get(thread)).thread_id])
    with working("looking for threads"):
        index = await read_index(seen_by(ledger, filters.user_id), since=filters.since, until=filters.until)
        if filters.model is not None or filters.agent is not None:
            await keep_run_by(ledger, index, model=filters.model, agent=filters.agent)
        if minima:
            await keep_scored(ledger, index, minima)
    return index


def _none_of(total: int, minima: Mapping[str, float], filters: Filters) -> str:
    """What no thread has, so that an empty export is not taken for one of an empty ledger."""
    runs = {"model": filters.model, "agent": filters.agent}
    of = " and ".join(f"the {name} {value!r}" for name, value in runs.items() if value is not None)
    lacks = [
        f"belongs to the user {filters.user_id!r}" if filters.user_id is not None else "",
        f"was active since {moment(filters.since)}" if filters.since is not None else "",
        f"was active before {moment(filters.until)}" if filters.until is not None else "",
        f"has a run of {of}" if of else "",
        *(f"has a mean score of at least {minimum:g} for {key!r}" for key, minimum in minima.items()),
    ]
    none = " and ".join(filter(None, lacks))
    return f"0 of {plural(total, 'thread')}" + (f": none {none}" if none and total else "")


@contextmanager
def open_output(output: str | None) -> Iterator[Callable[[str], object]]:
    """Yields a function that writes to stdout, or to a file that appears only once it is complete."""
    if output is None:
        yield sys.stdout.write
        return
    from chatledger.storage.drivers.new_file import text_file

    with text_file(output) as stream:
        yield stream.write
