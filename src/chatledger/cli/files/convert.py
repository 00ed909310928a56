"""`convert`: write a file in another format, without a database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.files.export import open_output
from chatledger.cli.files.import_files import LINE_SUFFIXES, failure_lines, open_input, say_unknown
from chatledger.cli.options import Debug, Output, require_files, require_folder, run
from chatledger.cli.output import plural
from chatledger.cli.progress import byte_bar
from chatledger.cli.remarks import Remarks

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatledger.transfer.convert import Conversion, Converted
    from chatledger.transfer.record_writer import RecordWriter
    from chatledger.transfer.report import FailedRecord


def add_to(app: typer.Typer) -> None:
    app.command("convert")(convert)


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File of JSON or JSON lines; - reads standard input.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="Format to write; `chatledger formats` lists them.")
    ],
    from_: Annotated[
        str,
        typer.Option("--from", metavar="FORMAT", help="Format of the file. auto: detect it in each record."),
    ] = "auto",
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            metavar="PATH",
            help="Field that holds a record's messages, such as data.turns.",
            show_default="the usual field of the format",
        ),
    ] = None,
    losses: Annotated[
        bool, typer.Option("--losses", help="List on stderr each value that the format cannot express.")
    ] = False,
    carry: Annotated[
        bool,
        typer.Option("--carry", help="Keep those values in the format's field for custom data, if it has one."),
    ] = False,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Convert a file to another format, without a database.

    The result equals that of an import followed by an export in the other format. Records keep their order and
    container (array or lines). Bad records, and records without a message that can be written, are reported and left
    out, and the exit code is 1.

    Example: chatledger convert chats.json --to anthropic -o out.json
    """

    def command() -> int:
        from chatledger.errors import UnknownFormat
        from chatledger.transfer.convert import Conversion

        require_files([file])
        require_folder(output)
        conversion = Conversion(from_, to, field=field, carry=carry)
        report = _ConvertReport(listing=losses)
        try:
            with open_output(output) as write:
                _convert(file, conversion, write, report)
        except UnknownFormat as error:
            if error.format is not None:
                raise
            say_unknown([error], option="--from")
            return ExitCode.FAILED
        report.print(conversion)
        return ExitCode.FOUND if report.failures else ExitCode.OK

    run(command, debug=debug)


def _convert(file: str, conversion: Conversion, write: Callable[[str], object], report: _ConvertReport) -> None:
    from chatledger.transfer.convert import convert_file
    from chatledger.transfer.record_writer import RecordWriter
    from chatledger.transfer.report import FailedRecord

    writer: RecordWriter | None = None
    with open_input(file) as stream, byte_bar(None if file == "-" else Path(file).stat().st_size) as advance:
        name = Path(file).name
        for converted in convert_file(stream, conversion, file=name, lines=file.endswith(LINE_SUFFIXES)):
            if isinstance(converted, FailedRecord):
                report.failures.append(converted)
                continue
            if writer is None:
                writer = RecordWriter(write, "array" if converted.container == "array" else "lines")
            writer.add(converted.value)
            report.add(converted)
            advance(name, 0 if file == "-" else stream.tell())
    if writer is not None:
        writer.close()


class _ConvertReport:
    def __init__(self, *, listing: bool) -> None:
        self._listing = listing
        self._read_as: Counter[str] = Counter()
        self._losses = Remarks()
        self.failures: list[FailedRecord] = []

    def add(self, converted: Converted) -> None:
        self._read_as[converted.read_as] += 1
        self._losses.add_losses(converted.losses, converted.place)

    def print(self, conversion: Conversion) -> None:
        for line in failure_lines(self.failures):
            say(line)
        for line in self._losses.lines() if self._listing else ():
            say(line)
        sources = ", ".join(self._read_as) or conversion.source
        failed = f", {plural(len(self.failures), 'record')} failed" if self.failures else ""
        say(f"{plural(self._read_as.total(), 'record')} converted from {sources} to {conversion.target}{failed}")
        if summary := self._losses.summary():
            say(summary + ("" if self._listing else " (add --losses to list them)"))
