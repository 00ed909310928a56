"""The typer application: it collects the commands of the other modules.

These import the ledger inside functions only, so that `--help` does not wait for SQLAlchemy to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from chatledger.cli import (
    backup,
    convert,
    demo,
    export,
    feedback,
    formats,
    history,
    import_files,
    migrate,
    partials,
    reencrypt,
    removal,
    repair,
    threads,
)
from chatledger.cli.exit_codes import EXIT_CODES, ExitCode, say
from chatledger.cli.options import KEY_FILE

app = typer.Typer(
    name="chatledger",
    help="The ledger of an LLM application: conversations, tool calls, runs and scores, in SQL tables.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


migrate.add_to(app)
import_files.add_to(app)
export.add_to(app)
convert.add_to(app)
formats.add_to(app)
threads.add_to(app)
removal.add_to(app)
backup.add_to(app)
reencrypt.add_to(app)
partials.add_to(app)
history.add_to(app)
repair.add_to(app)
app.add_typer(feedback.app, name="feedback")
demo.add_to(app)


def _say_version(asked: bool) -> None:
    if asked:
        from chatledger import __version__

        print(f"chatledger {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_say_version, is_eager=True)
    ] = False,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            envvar="CHATLEDGER_KEYS",
            help="The key file of an encrypted database; give it before the command.",
        ),
    ] = None,
) -> None:
    KEY_FILE.set(keys)


def run(words: Sequence[str]) -> int:
    try:
        app(args=list(words), prog_name="chatledger")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(ExitCode.OK)
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    return ExitCode.OK
