"""The typer application, made of the commands of the other modules.

The modules import the ledger inside functions only, so that `--help` does not wait for SQLAlchemy to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperArgument

from chatledger.cli import demo, mcp, serve, tokens
from chatledger.cli.conversations import branches, drafts, feedback, prompt, runs, search, show, threads, usage
from chatledger.cli.databases import backup, check, copy, erasures, migrate, reencrypt, removal, sql
from chatledger.cli.exit_codes import EXIT_CODES, ExitCode, say
from chatledger.cli.files import convert, export, formats, import_files
from chatledger.cli.options import KEY_FILE
from chatledger.cli.suggestions import Command, CommandGroup

app = typer.Typer(
    name="chatledger",
    cls=CommandGroup,
    help=(
        "Import, inspect, check, export and erase the conversations of an LLM application, stored in SQLite or "
        "PostgreSQL.\n\nTry it with sample conversations: chatledger demo"
    ),
    epilog=EXIT_CODES,
    no_args_is_help=True,
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
show.add_to(app)
check.add_to(app)
search.add_to(app)
sql.add_to(app)
removal.add_to(app)
erasures.add_to(app)
backup.add_to(app)
copy.add_to(app)
reencrypt.add_to(app)
drafts.add_to(app)
prompt.add_to(app)
app.add_typer(branches.app, name="branches", cls=CommandGroup)
app.add_typer(runs.app, name="runs", cls=CommandGroup)
usage.add_to(app)
app.add_typer(feedback.app, name="feedback", cls=CommandGroup)
serve.add_to(app)
mcp.add_to(app)
app.add_typer(tokens.app, name="token", cls=tokens.TokenGroup)
demo.add_to(app)


class _Command(Command):
    """A command whose help does not show the Python types of its arguments, such as `FILE <list[str]>`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010 - older releases have no such method


for _group in (app, branches.app, feedback.app, runs.app, tokens.app):
    for _command in _group.registered_commands:
        _command.cls = _Command


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
            help="JSON file with the keys of an encrypted database. Give this option before the command.",
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
