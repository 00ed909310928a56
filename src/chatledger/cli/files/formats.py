"""`formats`: list the formats and what each can express."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, run
from chatledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = {"no": "-"}


def add_to(app: typer.Typer) -> None:
    app.command("formats")(formats)


def formats(as_json: Json = False, debug: Debug = False) -> None:
    """List the formats and what each can express.

    When chatledger reads or writes a conversation, it reports values that the format cannot express as losses. The
    list includes formats of other installed packages; those that cannot be used are named on stderr.
    """

    def command() -> int:
        from chatledger.formats import unusable_formats
        from chatledger.formats.losses.capabilities import capabilities
        from chatledger.transfer.shapes import shape_names

        table = capabilities()
        records = [name for name in shape_names() if name not in table]
        if as_json:
            print_json({"formats": table, "records": records, "unusable": unusable_formats()})
        else:
            _print(table, records)
            for name, reason in unusable_formats().items():
                say(f"the format {name!r} {reason}")
        return ExitCode.OK

    run(command, debug=debug)


def _print(table: Mapping[str, Mapping[str, str]], records: list[str]) -> None:
    names = list(table)
    things = list(table[names[0]])
    print_table(
        ["can express", *names],
        ([thing, *(SHOWN.get(table[name][thing], table[name][thing]) for name in names)] for thing in things),
    )
    print("\n-: not expressed; form: expressed, but split, joined or in another form")
    print("import and convert read all of these formats, and also records of", ", ".join(records))
