"""`erase`, `redact` and `retain`: what goes for good, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import Debug, Json, Tenant, Url, run, with_ledger
from chatledger.cli.output import plural, print_json, print_table
from chatledger.cli.progress import working

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Erasure

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def add_to(app: typer.Typer) -> None:
    app.command("erase")(erase)
    app.command("redact")(redact)
    app.command("retain")(retain)


def erase(
    thread: Annotated[str | None, typer.Option("--thread", metavar="THREAD", help="One thread.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Every thread of a user.")] = None,
    whole_tenant: Annotated[bool, typer.Option("--whole-tenant", help="Every thread of the tenant.")] = False,
    keep_scores: Annotated[bool, typer.Option("--keep-scores", help="Keep the numbers of feedback.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is done.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Erase a thread, a user or a tenant for good, leaving a tombstone that refuses the ids of the threads."""

    async def work(ledger: Ledger) -> int:
        with working("erasing", quiet=as_json):
            erasure = await _erase(ledger, thread, user, keep_scores)
        _say_erased(erasure, as_json=as_json)
        return ExitCode.OK

    if (thread is not None) + (user is not None) + whole_tenant != 1:
        run(lambda: _misused("give one of --thread, --user and --whole-tenant"), debug=debug)
    if not yes:
        run(lambda: _misused("this cannot be undone; add --yes to do it"), debug=debug)
    with_ledger(url, tenant, work, debug=debug)


def redact(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="The message's seq, as `show` gives it.")],
    branch: Annotated[int | None, typer.Option("--branch", help="The branch; default: the active one.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is done.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Take the words out of one message for good; its place, ids and links stay."""

    async def work(ledger: Ledger) -> int:
        redacted = await ledger.messages.redact(thread, seq, branch=branch)
        if as_json:
            print_json(redacted.model_dump())
        else:
            say(f"message {seq} of {thread} has no words any more")
        return ExitCode.OK

    if not yes:
        run(lambda: _misused("this cannot be undone; add --yes to do it"), debug=debug)
    with_ledger(url, tenant, work, debug=debug)


def retain(
    older_than: Annotated[str, typer.Option("--older-than", metavar="AGE", help="As 12h, 90d or 52w.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is done.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete for good the threads that nobody has written to for longer than that."""

    async def work(ledger: Ledger) -> int:
        with working("deleting", quiet=as_json):
            deleted = await ledger.threads.retain(older_than=_age(older_than))
        if as_json:
            print_json(deleted.model_dump())
        else:
            _say_rows(deleted.rows)
        return ExitCode.OK

    def unconfirmed() -> int:
        _age(older_than)  # what is wrong with it is said first
        return _misused("this cannot be undone; add --yes to do it")

    if not yes:
        run(unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug)


async def _erase(ledger: Ledger, thread: str | None, user: str | None, keep_scores: bool) -> Erasure:
    if thread is not None:
        return await ledger.erasures.erase_thread(thread, keep_scores=keep_scores)
    if user is not None:
        return await ledger.erasures.erase_user(user, keep_scores=keep_scores)
    return await ledger.erasures.erase_tenant(keep_scores=keep_scores)


def _say_erased(erasure: Erasure, *, as_json: bool) -> None:
    if as_json:
        print_json(erasure.model_dump())
        return
    _say_rows(erasure.rows)
    if erasure.scores:
        say(f"{plural(erasure.scores, 'score')} kept, without words")


def _say_rows(rows: Mapping[str, int]) -> None:
    gone = [(table, f"{count:,}") for table, count in rows.items() if count]
    if gone:
        print_table(("table", "rows gone"), gone)
    else:
        say("nothing to remove")


def _misused(text: str) -> int:
    raise UsageError(text)


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if found is None:
        raise UsageError(f"--older-than takes an age as 12h, 90d or 52w, not {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
