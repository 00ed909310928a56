"""`prompt`: print what the model is sent of a conversation."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.conversations.threads import require_thread, thread_id_of
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import THREAD_HELP, Branch, Debug, Json, Latest, Tenant, Url, with_ledger
from chatledger.cli.output import print_json
from chatledger.cli.remarks import Remarks

if TYPE_CHECKING:
    from chatledger.ledger import Ledger


def add_to(app: typer.Typer) -> None:
    app.command("prompt")(prompt)


def prompt(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    format: Annotated[  # noqa: A002
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="Format of the provider: openai-chat, openai-responses, anthropic."
        ),
    ] = "openai-chat",
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            metavar="N",
            min=0,
            help="Print the instructions and the newest turns that fit into N tokens, at four characters per token.",
        ),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", min=0, help="Print only the newest N turns.")
    ] = None,
    branch: Branch = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a conversation as its provider accepts it, to send to the model.

    Repairs are printed on stderr, grouped by kind; no row changes. --json prints each of them beside the payload. A
    message that is still being written is left out. If there is nothing that can be sent, the command fails and says
    why.

    Example: chatledger prompt --latest --format anthropic --tokens 8000
    """

    async def work(ledger: Ledger) -> int:
        from chatledger import Tokens, Turns
        from chatledger.formats.history import prompt as write

        window = Tokens(tokens) if tokens is not None else None if turns is None else Turns(turns)
        thread_id = await thread_id_of(ledger, thread, latest=latest)
        history = await ledger.messages.history(thread_id, window, branch=branch)
        payload, repairs = write(format, history.messages, "dicts")
        if as_json:
            read = {name: getattr(history, name) for name in ("thread_id", "branch", "last_seq", "mark")}
            print_json({**read, "payload": payload, "repairs": [asdict(repair) for repair in repairs]})
        else:
            print_json(payload)
            remarks = Remarks()
            remarks.add_repairs(repairs)
            for line in remarks.lines():
                say(line)
        return ExitCode.OK

    def check() -> None:
        from chatledger.formats.history import require_provider

        require_thread(thread, latest=latest)
        if tokens is not None and turns is not None:
            raise UsageError("give --tokens or --turns, not both")
        require_provider(format)

    with_ledger(url, tenant, work, debug=debug, check=check)
