"""`drafts`: list messages that are still being written or were abandoned, and interrupt abandoned ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import moment, plural, print_list, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatledger.ledger import Ledger
    from chatledger.models import OpenDraft


def add_to(app: typer.Typer) -> None:
    app.command("drafts")(drafts)


def drafts(
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than",
            min=0,
            metavar="SECONDS",
            help="Select only messages whose last write was at least SECONDS ago.",
        ),
    ] = None,
    interrupt: Annotated[
        bool,
        typer.Option(
            "--interrupt",
            help="Mark the selected messages as interrupted; without --older-than, the abandoned ones.",
        ),
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List messages that are still being written or were abandoned.

    A message is abandoned if its writer stopped without completing it, for example because the process died.

    Example: chatledger drafts --interrupt
    """

    async def work(ledger: Ledger) -> int:
        selected, held = await ledger.drafts.list(), 0
        if older_than is not None:
            before = datetime.now(UTC) - timedelta(seconds=older_than)
            selected = [draft for draft in selected if draft.since <= before]
        elif interrupt:
            abandoned = await ledger.drafts.list(abandoned_for=0)
            selected, held = abandoned, len(selected) - len(abandoned)
        done = [await ledger.drafts.interrupt(draft) for draft in selected] if interrupt else None
        _print(selected, done, as_json=as_json)
        if held:
            _say_held(held)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _say_held(held: int) -> None:
    from chatledger.storage.append.request import LEASE

    say(
        f"{plural(held, 'draft')} left alone, because a writer may still be active: for {LEASE:g} seconds "
        "after its last write, or as long as it asked for; --older-than 0 interrupts anyway"
    )


def _print(selected: Sequence[OpenDraft], done: list[bool] | None, *, as_json: bool) -> None:
    if as_json:
        listed = [draft.model_dump() for draft in selected]
        if done is not None:
            listed = [{**fields, "interrupted": interrupted} for fields, interrupted in zip(listed, done, strict=True)]
        print_list(listed)
        return
    if selected:
        rows = [(draft.thread_id, draft.branch, draft.seq, draft.run_id, moment(draft.since)) for draft in selected]
        print_table(("thread", "branch", "seq", "run", "last written"), rows)
    if done is None:
        say(plural(len(selected), "draft"))
    else:
        say(
            f"{plural(sum(done), 'draft')} interrupted"
            + ("" if all(done) else f"; {len(done) - sum(done):,} left alone, because they changed meanwhile")
        )
