"""The door of a plain install, without typer and rich: `migrate` and `schema`, so that a server can be set up with
nothing else. For every other command it says which extra to install.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from chatledger.cli.outcome import EXIT_CODES, ExitCode, finish, say
from chatledger.cli.schema import migrate, schema
from chatledger.errors import MissingExtra

ANSWERED = ("migrate", "schema")


def run_plain(words: Sequence[str]) -> int:
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in ANSWERED:
        say(str(MissingExtra("cli", f"`chatledger {command}`")))
        return ExitCode.USAGE
    try:
        given = _parser().parse_args(words)
    except SystemExit as error:  # argparse has said why
        return int(error.code or 0)
    if given.version:
        from chatledger import __version__

        print(f"chatledger {__version__}")
        return ExitCode.OK
    if given.command is None:
        _parser().print_help()
        return ExitCode.USAGE
    if given.command == "schema":
        return finish(lambda: schema(given.url, as_json=given.json), debug=given.debug)
    return finish(
        lambda: migrate(given.url, to=given.to, sql=given.sql, yes=given.yes, as_json=given.json, rls=given.rls),
        debug=given.debug,
    )


def _parser() -> argparse.ArgumentParser:
    epilog = f"The other commands come with: pip install 'chatledger[cli]'. {EXIT_CODES}"
    parser = argparse.ArgumentParser("chatledger", description="The ledger of an LLM application.", epilog=epilog)
    parser.add_argument("--version", action="store_true", help="say which release this is")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in (("migrate", "bring a database to this release's schema"), ("schema", "say where it is")):
        one = commands.add_parser(name, help=purpose, description=purpose)
        one.add_argument("--url", help="a path, sqlite:///… or postgresql://… (default: CHATLEDGER_URL, chatledger.db)")
        one.add_argument("--tenant", help="means nothing here: the schema is everybody's")
        one.add_argument("--json", action="store_true", help="print JSON")
        one.add_argument("--debug", action="store_true", help="show a traceback when it fails")
        if name == "migrate":
            one.add_argument("--to", default="head", help="a revision, head or base, which drops all (default: head)")
            one.add_argument("--yes", action="store_true", help="drop every table, with --to base")
            one.add_argument("--rls", action=argparse.BooleanOptionalAction, help="row-level security, on PostgreSQL")
            one.add_argument("--sql", action="store_true", help="print the statements instead of running them")
    return parser
