"""`history`: print a conversation in a format, as stored or as its provider accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import THREAD_HELP, Branch, Debug, Json, Latest, Tenant, Url, with_ledger
from chatledger.cli.output import print_json
from chatledger.cli.remarks import Remarks
from chatledger.cli.threads import require_thread, thread_id_of

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Loss, Repair


@dataclass(frozen=True, slots=True)
class Found:
    """What the command prints."""

    last_seq: int
    payload: Any
    repairs: Sequence[Repair]
    losses: Sequence[Loss]


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
        found = await _read(ledger, await thread_id_of(ledger, thread, latest=latest))
        if as_json:
            print_json(_with_account(found))
        else:
            print_json(found.payload)
            _say_account(found)
        return ExitCode.OK

    async def _read(ledger: Ledger, thread_id: str) -> Found:
        from chatledger import Tokens, Turns

        if max_tokens is not None and last_turns is not None:
            raise UsageError("give --max-tokens or --last-turns, not both")
        window = None if last_turns is None else Turns(last_turns)
        history = await ledger.messages.history(
            thread_id, window if max_tokens is None else Tokens(max_tokens), branch=branch
        )
        if view == "model":
            from chatledger.formats.history import prompt

            payload, repairs = prompt(format, history.messages, "dicts")
            return Found(history.last_seq, payload, repairs, ())
        encoded = history.encode(format, as_="dicts")
        return Found(history.last_seq, encoded.payload, (), encoded.losses)

    def check() -> None:
        from chatledger.formats import get_codec

        require_thread(thread, latest=latest)
        get_codec(format)

    with_ledger(url, tenant, work, debug=debug, check=check)


def _with_account(found: Found) -> dict[str, object]:
    return {
        "payload": found.payload,
        "last_seq": found.last_seq,
        "repairs": [{"code": one.code, "seq": one.seq, "detail": one.detail} for one in found.repairs],
        "losses": [{"code": one.code, "seq": one.seq, "path": one.path} for one in found.losses],
    }


def _say_account(found: Found) -> None:
    repairs, losses = Remarks(), Remarks()
    repairs.add_repairs(found.repairs)
    losses.add_losses(found.losses)
    for line in [*repairs.lines(), *losses.lines()]:
        say(line)
    if summary := losses.summary():
        say(summary)
