"""`export`: threads out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.options import Debug, Json, Tenant, Url, require_one, with_ledger
from chatledger.cli.outcome import ExitCode, say
from chatledger.cli.output import plural
from chatledger.cli.progress import working

if TYPE_CHECKING:
    from chatledger.ledger import Ledger


def add_to(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    thread: Annotated[str | None, typer.Argument(metavar="[THREAD]", help="The thread's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All threads, in the order in which they came.")] = False,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option("--format", help="How to write the messages.", show_default="as they came, else openai-chat"),
    ] = None,
    container: Annotated[
        Literal["auto", "array", "lines"],
        typer.Option("--container", help="With --all: an array, or one record a line; auto: as they came."),
    ] = "auto",
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="A file to write to.")] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export a thread, or all of them, as JSON.

    A thread that was imported comes out as the record that came in, with what was added since. Any other thread is
    its messages, or with --all a record of thread_id, title, user_id, created_at, metadata and messages.
    """

    async def work(ledger: Ledger) -> int:
        require_one({"THREAD": thread is not None, "--all": everything})
        with writing(output) as write, working("exporting", quiet=output is None and sys.stdout.isatty()):
            losses = (
                await _export_all(ledger, write, format, container)
                if thread is None
                else await _export_one(ledger, write, thread, format)
            )
        if losses:
            say(f"{plural(losses, 'thing')} in the messages could not be expressed in this format")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


async def _export_one(ledger: Ledger, write: Callable[[str], object], thread: str, format_: str | None) -> int:
    from chatledger.transfer.exporting import export_thread
    from chatledger.transfer.writing import json_text

    exported = await export_thread(ledger, thread, format=format_)
    write(json_text(exported.value, indent=2) + "\n")
    return len(exported.losses)


async def _export_all(ledger: Ledger, write: Callable[[str], object], format_: str | None, container: str) -> int:
    from chatledger.transfer.exporting import export_all, read_index
    from chatledger.transfer.writing import RecordWriter

    index = await read_index(ledger)
    as_array = index.arrays if container == "auto" else container == "array"
    writer = RecordWriter(write, "array" if as_array else "lines")
    losses = 0
    async for exported in export_all(ledger, index, format=format_):
        writer.add(exported.value)
        losses += len(exported.losses)
    writer.close()
    return losses


@contextmanager
def writing(output: str | None) -> Iterator[Callable[[str], object]]:
    """Where text goes: stdout, or a file that appears when it is whole."""
    if output is None:
        yield sys.stdout.write
        return
    partial = Path(f"{output}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream.write
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)
