"""`partials`: messages that are still being written, or that a dead process left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import moment, plural, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatledger.ledger import Ledger
    from chatledger.models import PartialMessage


def add_to(app: typer.Typer) -> None:
    app.command("partials")(partials)


def partials(
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", min=0, metavar="SECONDS", help="Only messages whose last write is at least so old."
        ),
    ] = None,
    interrupt: Annotated[
        bool,
        typer.Option(
            "--interrupt",
            help="Mark abandoned messages as interrupted.",
        ),
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List partial messages: still being written, or left behind by a process that died."""

    async def work(ledger: Ledger) -> int:
        everything = not interrupt and older_than is None
        found = await (ledger.partials.list() if everything else ledger.partials.abandoned(older_than=older_than))
        held = 0 if everything or older_than is not None else len(await ledger.partials.list()) - len(found)
        done = [await ledger.partials.interrupt(one) for one in found] if interrupt else None
        _print(found, done, as_json=as_json)
        if held:
            _say_held(held)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _say_held(held: int) -> None:
    from chatledger.storage.append.request import LEASE

    say(
        f"{plural(held, 'partial message')} left alone: for {LEASE:g} seconds after a write, or as long as its writer "
        "asked for, a message may still be written; --older-than 0 interrupts it now"
    )


def _print(found: Sequence[PartialMessage], done: list[bool] | None, *, as_json: bool) -> None:
    if as_json:
        said = [one.model_dump() for one in found]
        if done is not None:
            said = [{**one, "interrupted": interrupted} for one, interrupted in zip(said, done, strict=True)]
        print_json({"partials": said})
        return
    if found:
        rows = [(one.thread_id, one.branch, one.seq, one.run_id, moment(one.since)) for one in found]
        print_table(("thread", "branch", "seq", "run", "last written"), rows)
    if done is None:
        say(plural(len(found), "partial message"))
    else:
        say(
            f"{plural(sum(done), 'message')} interrupted"
            + ("" if all(done) else "; their writers continued the others")
        )
