"""`threads`, `show` and `check`: what is in the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import console, moment, plural, print_json, print_table, short
from chatledger.cli.progress import working

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Page, Thread


def add_to(app: typer.Typer) -> None:
    app.command("threads")(threads)
    app.command("show")(show)
    app.command("check")(check)


def threads(
    user: Annotated[str | None, typer.Option("--user", help="Only this user's.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where the page before ended.")] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the threads, newest activity first."""

    async def work(ledger: Ledger) -> int:
        page = await ledger.threads.list(user_id=user, limit=limit, cursor=cursor)
        if as_json:
            print_json({"threads": [one.model_dump() for one in page], "next_cursor": page.next_cursor})
        else:
            _print_threads(page)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def _print_threads(page: Page[Thread]) -> None:
    if not page.items:
        say("no threads")
        return
    rows = [
        (one.thread_id, one.user_id, f"{one.message_count:,}", moment(one.active_at), short(one.title or one.last_text))
        for one in page
    ]
    print_table(("thread", "user", "messages", "active", "title or last text"), rows)
    if page.next_cursor is not None:
        say(f"there are more: --cursor {page.next_cursor}")


def show(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    branch: Annotated[int | None, typer.Option("--branch", help="Another branch than the active one.")] = None,
    last: Annotated[int | None, typer.Option("--last", min=0, help="Only the end, from the start of a turn.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut no text short.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw a conversation: each call beside its result, and what breaks a rule."""

    async def work(ledger: Ledger) -> int:
        found = await ledger.threads.get(thread)
        history = await ledger.messages.history(thread, branch=branch, last=last)
        if as_json:
            messages = [message.model_dump() for message in history]
            print_json({"thread": found.model_dump(), "version": history.version, "messages": messages})
        else:
            from chatledger.cli.render import render

            render(console(), found, history.messages, full=full)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def check(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="One thread; all, if none is given.")] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", help="What this one would refuse: the name of its format.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List what stored conversations break: violations, calls without result, abandoned partial messages, and the
    order of roles that strict providers ask for. The exit code is 1 if there is anything.

    With --provider, list instead which conversations that provider would refuse as they are stored, and why: each of
    these is what its model view (history --view model) repairs.
    """

    async def work(ledger: Ledger) -> int:
        with working("checking", quiet=as_json):
            checked, found = await (_check(ledger, thread) if provider is None else _refused(ledger, thread, provider))
        if as_json:
            print_json({"checked": checked, "findings": found})
            return ExitCode.FOUND if found else ExitCode.OK
        if found:
            headings = ["reason"] if provider is not None else ["rule", "state"]
            print_table(("thread", "seq", *headings, "detail"), [tuple(one.values()) for one in found])
        say(f"{plural(checked, 'thread')} checked, {plural(len(found), 'finding') if found else 'all well'}")
        return ExitCode.FOUND if found else ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


async def _check(ledger: Ledger, thread: str | None) -> tuple[int, list[dict[str, object]]]:
    """How many threads were checked, and what was found in them."""
    checked = 0
    found: list[dict[str, object]] = []
    async for thread_id in thread_ids(ledger, thread):
        checked += 1
        for one in await ledger.threads.check(thread_id):
            said = {"seq": one.seq, "rule": one.rule, "state": "open" if one.open else "broken", "detail": one.detail}
            found.append({"thread_id": thread_id, **said})
    return checked, found


async def _refused(ledger: Ledger, thread: str | None, provider: str) -> tuple[int, list[dict[str, object]]]:
    """How many threads were looked at, and what the provider would refuse in them."""
    from chatledger.formats.model_view import get_provider, is_refusal

    get_provider(provider)  # also where there is no thread
    checked = 0
    found: list[dict[str, object]] = []
    async for thread_id in thread_ids(ledger, thread):
        checked += 1
        viewed = await ledger.history(thread_id, format=provider, view="model")
        found += [
            {"thread_id": thread_id, "seq": one.seq, "reason": one.code, "detail": one.detail}
            for one in viewed.repairs
            if is_refusal(one)
        ]
    return checked, found


async def thread_ids(ledger: Ledger, thread: str | None) -> AsyncIterator[str]:
    """The one thread that was asked for, else all of them."""
    if thread is not None:
        yield thread
        return
    cursor = None
    while True:
        page = await ledger.threads.list(limit=1_000, cursor=cursor)
        for one in page:
            yield one.thread_id
        cursor = page.next_cursor
        if cursor is None:
            return
