"""`history`: print a conversation in a format, as stored or as its provider accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import THREAD_HELP, Branch, Debug, Json, Latest, Tenant, Url, with_ledger
from chatledger.cli.output import print_json
from chatledger.cli.remarks import Remarks
from chatledger.cli.threads import require_thread, thread_id_of

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import FormattedHistory


def add_to(app: typer.Typer) -> None:
    app.command("history")(history)


def history(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    format: Annotated[  # noqa: A002
        str,
        typer.Option("--format", metavar="FORMAT", help="Format of the messages; `chatledger formats` lists them."),
    ] = "openai-chat",
    view: Annotated[
        Literal["stored", "model"],
        typer.Option("--view", help="stored: messages as stored; model: repaired, so that the provider accepts them."),
    ] = "stored",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            metavar="N",
            min=0,
            help="Print the instructions and the newest turns that fit into N tokens, at four characters per token.",
        ),
    ] = None,
    last_turns: Annotated[
        int | None, typer.Option("--last-turns", metavar="N", min=0, help="Print only the newest N turns.")
    ] = None,
    branch: Branch = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a conversation as JSON in a provider's format.

    Repairs and losses are printed on stderr, grouped by kind. --json prints each of them beside the payload. If the
    model view has nothing that can be sent, the command fails and says why.

    Example: chatledger history --latest --format anthropic --view model
    """

    async def work(ledger: Ledger) -> int:
        found = await ledger.history(
            await thread_id_of(ledger, thread, latest=latest),
            format=format,
            view=view,
            as_="dicts",
            max_tokens=max_tokens,
            last_turns=last_turns,
            branch=branch,
        )
        if as_json:
            print_json(_with_account(found))
        else:
            print_json(found.payload)
            _say_account(found)
        return ExitCode.OK

    def check() -> None:
        from chatledger.formats import get_codec

        require_thread(thread, latest=latest)
        get_codec(format)

    with_ledger(url, tenant, work, debug=debug, check=check)


def _with_account(found: FormattedHistory) -> dict[str, object]:
    return {
        "payload": found.payload,
        "version": found.version,
        "repairs": [{"code": one.code, "seq": one.seq, "detail": one.detail} for one in found.repairs],
        "losses": [{"code": one.code, "seq": one.seq, "path": one.path} for one in found.losses],
    }


def _say_account(found: FormattedHistory) -> None:
    repairs, losses = Remarks(), Remarks()
    repairs.add_repairs(found.repairs)
    losses.add_losses(found.losses)
    for line in [*repairs.lines(), *losses.lines()]:
        say(line)
    if summary := losses.summary():
        say(summary)
