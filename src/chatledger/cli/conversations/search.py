"""`search`: find a text in messages and titles."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.conversations.threads import chosen_thread, say_damaged
from chatledger.cli.exit_codes import say
from chatledger.cli.options import Debug, Json, OnlyThread, Tenant, Url, seen_by, time_option, with_ledger
from chatledger.cli.output import console, moment, print_list

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Hit, Page


def add_to(app: typer.Typer) -> None:
    app.command("search")(search)


def search(
    words: Annotated[list[str], typer.Argument(metavar="TEXT", help="The text to find, in any case.")],
    threads: Annotated[
        bool, typer.Option("--threads", help="Show each thread once, and search the titles as well.")
    ] = False,
    user: Annotated[str | None, typer.Option("--user", help="Search only the threads of this user.")] = None,
    thread: OnlyThread = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="Search only messages of this role. Repeat it for more roles.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Search only threads of this kind.")] = None,
    since: Annotated[datetime | None, time_option("--since", "Search only messages from this time on.")] = None,
    until: Annotated[datetime | None, time_option("--until", "Search only messages before this time.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Maximum number of hits to list.")] = 20,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Continue after the page that ended with this cursor.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find a text in the messages of all threads, newest first.

    It is searched in texts, tool results, names of tools, and arguments.
    """
    from chatledger.errors import InvalidArgument

    query = " ".join(words)

    async def work(ledger: Ledger) -> int:
        if threads and (thread is not None or role or since is not None or until is not None):
            raise InvalidArgument("--threads", "does not go with --thread, --role, --since or --until")
        if threads:
            page = await seen_by(ledger, user).threads.search(query, kind=kind, limit=limit, cursor=cursor)
        else:
            page = await seen_by(ledger, user).messages.search(
                query,
                thread_id=await chosen_thread(ledger, thread),
                roles=role or None,
                kind=kind,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
            )
        if as_json:
            print_list([hit.model_dump() for hit in page], page.next_cursor, complete=page.complete)
        else:
            _print_hits(page)
        return say_damaged(page.damaged)

    with_ledger(url, tenant, work, debug=debug)


def _print_hits(page: Page[Hit]) -> None:
    from rich.text import Text

    from chatledger.cli.escape import one_line

    out = console()
    for hit in page:
        place = hit.thread_id if hit.seq is None else f"{hit.thread_id} {hit.seq}"
        out.print(one_line(f"{place}  {hit.role or hit.field} · {moment(hit.created_at)}"), style="bold")
        before, match, after = (" ".join(part.splitlines()) for part in (hit.before, hit.match, hit.after))
        out.print(Text.assemble("    ", one_line(before), (one_line(match), "reverse"), one_line(after)))
    if not page.items and page.complete:
        say("nothing found")
    if not page.complete:
        say(f"searched the newest messages only; to go on: --cursor {page.next_cursor}")
    elif page.next_cursor is not None:
        say(f"for more: --cursor {page.next_cursor}")
