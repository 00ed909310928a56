"""`token add`, `token list` and `token revoke`: who may call `chatledger serve --tokens FILE`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, Tenant, require_files, run, time_option
from chatledger.cli.output import moment, print_json, print_list, print_table
from chatledger.cli.suggestions import CommandGroup

if TYPE_CHECKING:
    from chatledger.server.callers.access import Caller
    from chatledger.server.callers.token_entries import TokenEntry
    from chatledger.server.callers.tokens import TokenFile

_NEW_FILE = typer.Option("--tokens", metavar="FILE", help="File of the tokens, made if it is missing.")
_FILE = typer.Option("--tokens", metavar="FILE", help="File of the tokens.")


class TokenGroup(CommandGroup):
    """`chatledger token --tokens FILE --user USER` means `token add`, which was the only command once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["add", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help="Make, list and revoke the tokens of a server.", no_args_is_help=True, rich_markup_mode=None)


@app.command("add")
def add(
    tokens: Annotated[str, _NEW_FILE],
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="The user whom the token lets in.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Let in the administrator, who sees all users.")] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="Let in an operator, who reads the metrics and no conversation.")
    ] = False,
    scope: Annotated[
        Literal["read", "ask", "write"] | None,
        typer.Option(
            "--scope",
            help="read: change nothing. ask: also ask questions, fork and score in own threads. write: all.",
            show_default="write",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="A name for the list of tokens.")] = None,
    expires: Annotated[datetime | None, time_option("--expires", "Refuse the token from this time on.")] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a token for `chatledger serve --tokens FILE`, and print it.

    The file keeps only a hash of the token, so it cannot be shown again. Give people and their browsers a token of the
    scope read or ask. A token that may write can store answers, tool results and costs in the user's name: keep it for
    your own backend, and --admin too.

    Example: chatledger token add --tokens tokens.json --user ada --scope ask --expires 2030-01-01
    """

    def command() -> int:
        if (user is not None) + admin + operator != 1:
            raise UsageError("give one of --user USER, --admin and --operator")
        if operator and scope is not None:
            raise UsageError("--operator has no --scope: such a token reads the metrics, and nothing else")
        from chatledger.server.callers.access import Caller
        from chatledger.server.callers.tokens import TokenFile

        caller = Caller(user, admin, tenant, "operator" if operator else scope or "write")
        file = TokenFile.create(tokens)
        token = file.add(caller, name=name, expires_at=expires)
        if as_json:
            print_json({"token": token, **_shown(file.entries()[-1])})
        else:
            print(token)
            say(f"{tokens} accepts it for {_who(caller)} of tenant {tenant}, with the scope {caller.scope}")
        return ExitCode.OK

    run(command, debug=debug)


@app.command("list")
def list_tokens(tokens: Annotated[str, _FILE], as_json: Json = False, debug: Debug = False) -> None:
    """List the tokens of a file: their ids, whose they are, what they may do, and until when."""

    def command() -> int:
        entries = _file(tokens).entries()
        if as_json:
            print_list([_shown(entry) for entry in entries])
            return ExitCode.OK
        rows = [
            (
                entry.id,
                entry.name,
                _who(entry.caller),
                entry.caller.scope,
                entry.caller.tenant,
                entry.created_at,
                _end(entry),
            )
            for entry in entries
        ]
        print_table(("id", "name", "who", "scope", "tenant", "created", "expires"), rows)
        return ExitCode.OK

    run(command, debug=debug)


def _end(entry: TokenEntry) -> str:
    return moment(entry.expires_at) + (" (over)" if entry.has_expired else "")


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id, as `token list` prints it.")],
    tokens: Annotated[str, _FILE],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Withdraw a token: remove its entry from the file. A running server refuses it from its next request on."""

    def command() -> int:
        gone = _file(tokens).revoke(token_id)
        if as_json:
            print_json(_shown(gone))
        else:
            print(f"revoked {gone.id}, the token of {_who(gone.caller)} of tenant {gone.caller.tenant}")
        return ExitCode.OK

    run(command, debug=debug)


def _file(tokens: str) -> TokenFile:
    from chatledger.server.callers.tokens import TokenFile

    require_files([tokens])
    return TokenFile(tokens)


def _who(caller: Caller) -> str:
    if caller.user_id is not None:
        return f"user {caller.user_id}"
    return "the administrator" if caller.admin else "an operator"


def _shown(entry: TokenEntry) -> dict[str, Any]:
    """The entry as JSON, without the hash."""
    caller = entry.caller
    return {
        "id": entry.id,
        "name": entry.name,
        "tenant": caller.tenant,
        "user_id": caller.user_id,
        "admin": caller.admin,
        "scope": caller.scope,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
    }
