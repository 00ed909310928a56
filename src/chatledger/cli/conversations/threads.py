"""`threads` and `archive`: list and archive threads. How commands name a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import (
    Debug,
    Json,
    Tenant,
    Url,
    require_one,
    seen_by,
    with_ledger,
)
from chatledger.cli.output import moment, print_json, print_list, print_table, short
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Page, Thread
    from chatledger.storage.lists.thread_list import ThreadOrder


SHOWN_IDS = 5


def add_to(app: typer.Typer) -> None:
    app.command("threads")(threads)
    app.command("archive")(archive)


def threads(
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="List only threads of this user.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="List only threads of this kind.")] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="List only archived threads, which are left out by default.")
    ] = False,
    order: Annotated[
        str,
        typer.Option(
            "--order", metavar="active|created", help="Sort by time of last activity or of creation, newest first."
        ),
    ] = "active",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Maximum number of threads to list.")
    ] = 20,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="CURSOR", help="List the next page; the previous page printed its cursor."),
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List threads, most recently active first."""

    async def work(ledger: Ledger) -> int:
        page = await seen_by(ledger, user).threads.list(
            kind=kind,
            archived=archived,
            order=cast("ThreadOrder", order),  # the call refuses other words
            limit=limit,
            cursor=cursor,
        )
        if as_json:
            print_list([thread.model_dump() for thread in page], page.next_cursor)
        else:
            _print_threads(page)
        return say_damaged(page.damaged)

    with_ledger(url, tenant, work, debug=debug)


def say_damaged(damaged: Sequence[ChatLedgerError]) -> ExitCode:
    """Report what could not be read. Returns FOUND if there is anything to report."""
    for error in damaged:
        say(str(error))
    return ExitCode.FOUND if damaged else ExitCode.OK


def print_page(headings: Sequence[str], rows: Sequence[Sequence[object]], page: Page[Any], nothing: str) -> None:
    """Print the rows of a page as a table, and the option that reads on."""
    if not page.items and not page.damaged:
        say(nothing if page.next_cursor is None else "nothing on this page")
    elif rows:
        print_table(headings, rows)
    if page.next_cursor is not None:
        say(f"next page: --cursor {page.next_cursor}")


def _print_threads(page: Page[Thread]) -> None:
    rows = [
        (
            thread.thread_id,
            thread.user_id,
            f"{thread.message_count:,}",
            moment(thread.active_at),
            short(thread.title or thread.preview),
        )
        for thread in page
    ]
    print_page(("thread", "user", "messages", "active", "title or last message"), rows, page, "no threads")


def archive(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    undo: Annotated[bool, typer.Option("--undo", help="Bring the thread back into lists.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Hide a thread from lists. Reading and writing it work as before.

    `threads --archived` lists archived threads.
    """

    async def work(ledger: Ledger) -> int:
        updated = await ledger.threads.update(thread, archived=not undo)
        if as_json:
            print_json(updated.model_dump())
        else:
            say(f"thread {thread!r} is {'listed again' if undo else 'archived'}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def require_thread(thread: str | None, *, latest: bool) -> None:
    """Raises UsageError unless either THREAD or --latest is given."""
    require_one({"THREAD": thread is not None, "--latest": latest})


async def thread_id_of(ledger: Ledger, thread: str | None, *, latest: bool) -> str:
    """The id of the thread that `thread` names, in full or by a unique prefix, or of the latest thread.

    A full id wins over a longer id that begins with it. Raises ThreadNotFound, and UsageError for a prefix of several
    ids and unless exactly one of the two arguments is given.

    Every command that reads uses it, and none that writes: once a thread is deleted, its id could be a prefix of
    another thread's id.
    """
    from chatledger.errors import NotFound, ThreadNotFound
    from chatledger.repositories import scope_of
    from chatledger.storage.lists.thread_ids import ids_with_prefix

    require_thread(thread, latest=latest)
    if thread is None:
        newest = await ledger.threads.list(limit=1)
        if newest.damaged:
            raise newest.damaged[0]
        if not newest.items:
            raise NotFound("--latest found no thread that is not archived")
        return newest.items[0].thread_id
    ids = await ids_with_prefix(scope_of(ledger), thread, SHOWN_IDS + 1) if thread else []
    if not ids:
        raise ThreadNotFound(thread)
    if thread in ids or len(ids) == 1:
        return thread if thread in ids else ids[0]
    more = ", …" if len(ids) > SHOWN_IDS else ""
    raise UsageError(f"several thread ids begin with {thread!r}: {', '.join(ids[:SHOWN_IDS])}{more}")


async def chosen_thread(ledger: Ledger, thread: str | None) -> str | None:
    """The id of the thread that the option --thread names, as in `thread_id_of`; None without the option."""
    return None if thread is None else await thread_id_of(ledger, thread, latest=False)


async def thread_ids(ledger: Ledger, thread: str | None) -> AsyncIterator[str]:
    """The given thread id, or the ids of all threads."""
    from chatledger.repositories import scope_of
    from chatledger.storage.lists.thread_ids import iterate_ids

    if thread is not None:
        yield thread
        return
    async for thread_id in iterate_ids(scope_of(ledger)):
        yield thread_id
