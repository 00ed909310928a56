"""`formats`: what can be read and written, and what each format expresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from chatledger.cli.options import Debug, Json, run
from chatledger.cli.outcome import ExitCode
from chatledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = {"no": "-"}


def add_to(app: typer.Typer) -> None:
    app.command("formats")(formats)


def formats(as_json: Json = False, debug: Debug = False) -> None:
    """Say what can be imported and converted, and what of a conversation each format can express.

    What a format cannot express is told as a loss wherever a conversation is read or written in it.
    """

    def command() -> int:
        from chatledger.formats.losses.capabilities import capabilities
        from chatledger.transfer.shapes import shape_names

        table = capabilities()
        records = [name for name in shape_names() if name not in table]
        if as_json:
            print_json({"formats": table, "records": records})
        else:
            _print(table, records)
        return ExitCode.OK

    run(command, debug=debug)


def _print(table: Mapping[str, Mapping[str, str]], records: list[str]) -> None:
    names = list(table)
    things = list(table[names[0]])
    print_table(
        ["can express", *names],
        ([thing, *(SHOWN.get(table[name][thing], table[name][thing]) for name in names)] for thing in things),
    )
    print("\nform: it is there, but split, joined or said in another way")
    print("import and convert read all of these, and records of", ", ".join(records))
