"""`export`: write threads as JSON."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import (
    THREAD_HELP,
    Debug,
    Json,
    Latest,
    Tenant,
    Url,
    require_folder,
    require_one,
    with_ledger,
)
from chatledger.cli.output import plural
from chatledger.cli.progress import count_bar, working
from chatledger.cli.remarks import SHOWN, Remarks
from chatledger.cli.threads import say_damaged, thread_id_of

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.transfer.export import Index


def add_to(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Export all threads, in the order of their import or creation.")
    ] = False,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option("--format", help="The format of the messages.", show_default="as imported, else openai-chat"),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='For training: one conversation per line, only {"messages": […]}.')
    ] = False,
    view: Annotated[
        Literal["stored", "model"],
        typer.Option("--view", help="With --jsonl: messages as stored, or as the format's provider accepts them."),
    ] = "stored",
    min_score: Annotated[
        list[str] | None,
        typer.Option(
            "--min-score", metavar="KEY=SCORE", help="Only threads whose mean score for KEY is at least SCORE."
        ),
    ] = None,
    container: Annotated[
        Literal["auto", "array", "lines"],
        typer.Option("--container", help="With --all: an array, or one record per line; auto: as imported."),
    ] = "auto",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; default: standard output.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export a thread, or all of them, as JSON.

    An imported thread is written as its original record, with the messages added since. Any other thread is written
    as its messages, or with --all as a record of thread_id, title, user_id, created_at, metadata and messages.

    Damaged threads are reported and left out; the exit code is then 1.

    --jsonl writes training data instead, from all threads unless one is named. --min-score takes the mean of the
    scores that count, as `feedback summary --thread` does; it leaves out threads without a score. With --view model, a
    thread of which nothing can be sent is left out and reported; the exit code is then 1.
    """

    async def work(ledger: Ledger) -> int:
        one = thread is not None or latest
        several = everything or (jsonl and not one)
        require_one({"THREAD": thread is not None, "--latest": latest, "--all": several})
        if view != "stored" and not jsonl:
            raise UsageError("--view goes with --jsonl; chatledger history shows one thread as a model gets it")
        minima = dict(map(_minimum, min_score or ()))
        if one and minima:
            raise UsageError("--min-score chooses among all threads; it does not go with THREAD or --latest")
        require_folder(output)
        _require_format(format)
        chosen = await thread_id_of(ledger, thread, latest=latest) if one else None
        with open_output(output) as write:
            if chosen is not None and not jsonl:
                report = await _export_one(ledger, write, chosen, format)
            else:
                index = await _index(ledger, chosen, minima)
                report = await _export_many(
                    ledger, write, index, format, "lines" if jsonl else container, view if jsonl else None
                )
        return report.print()

    with_ledger(url, tenant, work, debug=debug)


def _require_format(name: str | None) -> None:
    """Raises UnknownFormat, even if there is no thread to write."""
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
        raise UsageError(f"--min-score takes KEY=SCORE, as in stars=4; not {text!r}")
    return key, minimum


@dataclass(slots=True)
class _Report:
    losses: Remarks = field(default_factory=Remarks)
    repairs: int = 0
    index: Index | None = None

    def print(self) -> ExitCode:
        if self.repairs:
            say(f"{plural(self.repairs, 'repair')} made, so that the provider accepts the messages")
        for line in self.losses.lines():
            say(line)
        if summary := self.losses.summary():
            say(summary)
        return ExitCode.OK if self.index is None else _say_missing(self.index)


def _say_missing(index: Index) -> ExitCode:
    """Report the threads that are not exported. Returns FOUND if there are any."""
    for thread_id, error in list(index.left_out.items())[:SHOWN]:
        say(f"thread {thread_id}: left out, {error}")
    if index.left_out:
        say(f"{plural(len(index.left_out), 'thread')} left out")
    code = say_damaged(index.damaged)
    if index.damaged:
        say(f"{plural(len(index.damaged), 'damaged thread')} not exported")
    return ExitCode.FOUND if index.left_out else code


async def _export_one(ledger: Ledger, write: Callable[[str], object], thread: str, format_: str | None) -> _Report:
    from chatledger.transfer.export import export_thread
    from chatledger.transfer.record_writer import json_text

    exported = await export_thread(ledger, thread, format=format_)
    write(json_text(exported.value, indent=2) + "\n")
    report = _Report()
    report.losses.add_losses(exported.losses)
    return report


async def _export_many(
    ledger: Ledger,
    write: Callable[[str], object],
    index: Index,
    format_: str | None,
    container: str,
    view: Literal["stored", "model"] | None,
) -> _Report:
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
    report = _Report(index=index)
    with count_bar("exporting", len(index.thread_ids), quiet=sys.stdout.isatty()) as advance:
        async for one in exported:
            advance()
            writer.add(one.value)
            report.losses.add_losses(one.losses, f"thread {one.thread_id}")
            report.repairs += one.repairs
    writer.close()
    return report


async def _index(ledger: Ledger, thread: str | None, minima: Mapping[str, float]) -> Index:
    from chatledger.transfer.export import Index, keep_scored, read_index

    if thread is not None:
        return Index([(await ledger.threads.get(thread)).thread_id])
    with working("looking for threads"):
        index = await read_index(ledger)
        if minima:
            await keep_scored(ledger, index, minima)
    return index


@contextmanager
def open_output(output: str | None) -> Iterator[Callable[[str], object]]:
    """Yields a function that writes to stdout, or to a file that appears only when it is complete.

    A pipe or a device such as /dev/null is written in place: moving a file there would replace it for everybody.
    """
    if output is None:
        yield sys.stdout.write
        return
    target = Path(output).resolve()
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream.write
        return
    partial = target.with_name(f"{target.name}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream.write
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
