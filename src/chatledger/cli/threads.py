"""`threads`, `archive`, `show` and `check`: list, archive, print and check stored threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import THREAD_HELP, Debug, Json, Latest, Tenant, Url, require_one, with_ledger
from chatledger.cli.output import console, moment, plural, print_json, print_table, short
from chatledger.cli.progress import share_bar
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import History, Page, Thread
    from chatledger.storage.repositories.thread_list import ThreadOrder


SHOWN_IDS = 5


def add_to(app: typer.Typer) -> None:
    app.command("threads")(threads)
    app.command("archive")(archive)
    app.command("show")(show)
    app.command("check")(check)


def threads(
    user: Annotated[str | None, typer.Option("--user", help="Only threads of this user.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only threads of this kind.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived threads; default: the others.")] = False,
    order: Annotated[str, typer.Option("--order", help="By `active`, the last activity, or `created`.")] = "active",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="List at most so many.")] = 20,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Continue after the page that ended with this cursor.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the threads, newest first."""

    async def work(ledger: Ledger) -> int:
        page = await ledger.threads.list(
            user_id=user,
            kind=kind,
            archived=archived,
            order=cast("ThreadOrder", order),  # the call refuses other words
            limit=limit,
            cursor=cursor,
        )
        if as_json:
            print_json({"threads": [one.model_dump() for one in page], "next_cursor": page.next_cursor})
        else:
            _print_threads(page)
        return say_damaged(page.damaged)

    with_ledger(url, tenant, work, debug=debug)


def say_damaged(damaged: Sequence[ChatLedgerError]) -> ExitCode:
    """Report what could not be read. Returns FOUND if there is any."""
    for error in damaged:
        say(str(error))
    return ExitCode.FOUND if damaged else ExitCode.OK


def _print_threads(page: Page[Thread]) -> None:
    if not page.items and not page.damaged:
        say("no threads")
        return
    rows = [
        (one.thread_id, one.user_id, f"{one.message_count:,}", moment(one.active_at), short(one.title or one.preview))
        for one in page
    ]
    print_table(("thread", "user", "messages", "active", "title or preview"), rows)
    if page.next_cursor is not None:
        say(f"for more: --cursor {page.next_cursor}")


def archive(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    undo: Annotated[bool, typer.Option("--undo", help="Show the thread in lists again.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Leave a thread out of lists. It is read and written as before."""

    async def work(ledger: Ledger) -> int:
        found = await (ledger.threads.unarchive(thread) if undo else ledger.threads.archive(thread))
        if as_json:
            print_json(found.model_dump())
        else:
            say(f"thread {thread!r} is {'listed again' if undo else 'archived'}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def show(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    branch: Annotated[int | None, typer.Option("--branch", help="The branch; default: the active one.")] = None,
    newest: Annotated[
        int | None,
        typer.Option("--newest", min=0, help="So many messages at the end, or before --before, and whole groups."),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=0, help="At most so many of the last messages, in whole turns.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, help="So many messages from the beginning, after --after or before --before."),
    ] = None,
    before: Annotated[int | None, typer.Option("--before", help="Only messages before this seq.")] = None,
    after: Annotated[int | None, typer.Option("--after", help="Only messages after this seq.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten long texts.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a conversation, each call with its result, and the rules that are broken.

    The whole branch, or a page of it: then the options that read on are reported on stderr, or as cursors by --json. A
    group is a call with its results.
    """

    async def work(ledger: Ledger) -> int:
        thread_id = await thread_id_of(ledger, thread, latest=latest)
        found = await ledger.threads.get(thread_id)
        history = await ledger.messages.history(
            thread_id, branch=branch, newest=newest, last=last, limit=limit, before=before, after=after
        )
        if as_json:
            cursors = {"previous_cursor": history.previous_cursor, "next_cursor": history.next_cursor}
            messages = [message.model_dump() for message in history]
            print_json({"thread": found.model_dump(), "version": history.version, **cursors, "messages": messages})
        else:
            from chatledger.cli.render import render

            render(console(), found, history.messages, full=full)
            _say_neighbours(history, next((size for size in (newest, last, limit) if size is not None), None))
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug, check=lambda: require_thread(thread, latest=latest))


def _say_neighbours(history: History, size: int | None) -> None:
    """The options that print the messages before and after a page, in pages of the same size."""
    if history.previous_cursor is not None:
        say(f"earlier messages: {'' if size is None else f'--newest {size} '}--before {history.previous_cursor}")
    if history.next_cursor is not None:
        say(f"later messages: {'' if size is None else f'--limit {size} '}--after {history.next_cursor}")


def check(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=f"{THREAD_HELP} Default: all threads.")] = None,
    latest: Latest = False,
    provider: Annotated[
        str | None, typer.Option("--provider", help="List what this provider, named by its format, would refuse.")
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the errors of stored conversations: damaged cells, broken rules, calls without a result, abandoned partial
    messages. The exit code is 1 if there are any. Advice changes no exit code: an order of roles and arguments of calls
    that some providers refuse.

    With --provider, list instead what that provider would refuse in the conversations as they are stored, and why. Its
    model view (history --view model) repairs all of these but damaged cells. The exit code is 1 if there are any.
    """

    async def work(ledger: Ledger) -> int:
        chosen = await thread_id_of(ledger, thread, latest=latest) if latest or thread is not None else None
        with share_bar("checking", quiet=as_json) as progress:
            checked, found = await (
                _check(ledger, chosen, progress) if provider is None else _refused(ledger, chosen, provider)
            )
        errors = [one for one in found if one.get("severity") != "advice"]
        if as_json:
            print_json({"checked": checked, "findings": found})
        else:
            if found:
                headings = ["reason"] if provider is not None else ["severity", "rule", "state"]
                print_table(("thread", "seq", *headings, "detail"), [tuple(one.values()) for one in found])
            advice = [f"{len(found) - len(errors):,} advice"] if len(errors) < len(found) else []
            counts = [plural(len(errors), "error" if provider is None else "finding")] if errors else []
            say(f"{plural(checked, 'thread')} checked, {', '.join([*counts, *advice]) or 'all well'}")
        return ExitCode.FOUND if errors else ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


async def _check(
    ledger: Ledger, thread: str | None, progress: Callable[[int, int], None]
) -> tuple[int, list[dict[str, object]]]:
    """The number of threads checked, and the findings."""
    checked = 0
    found: list[dict[str, object]] = []
    async for one in ledger.check(thread, progress=progress):
        checked += one.thread_id is not None
        found += [
            {
                "thread_id": one.thread_id,
                "seq": finding.seq,
                "severity": finding.severity,
                "rule": finding.rule,
                "state": "open" if finding.open else "broken",
                "detail": finding.detail,
            }
            for finding in one.findings
        ]
    return checked, found


async def _refused(ledger: Ledger, thread: str | None, provider: str) -> tuple[int, list[dict[str, object]]]:
    """The number of threads checked, and what the provider would refuse in them."""
    from chatledger.errors import NothingToSend
    from chatledger.formats.model_view import get_provider, is_refusal
    from chatledger.storage.rows.messages import is_damage

    get_provider(provider)  # an unknown provider is an error even if there is no thread
    checked = 0
    found: list[dict[str, object]] = []
    async for thread_id in thread_ids(ledger, thread):
        checked += 1
        try:
            viewed = await ledger.history(thread_id, format=provider, view="model")
        except NothingToSend as error:
            if error.reasons:  # a thread without messages has no fault: nobody has spoken yet
                empty = {"seq": None, "reason": "nothing-to-send", "detail": str(error)}
                found.append({"thread_id": thread_id, **empty})
            continue
        except ChatLedgerError as error:
            if not is_damage(error):
                raise
            found.append({"thread_id": thread_id, "seq": None, "reason": "damaged", "detail": str(error)})
            continue
        found += [
            {"thread_id": thread_id, "seq": one.seq, "reason": one.code, "detail": one.detail}
            for one in viewed.repairs
            if is_refusal(one)
        ]
    return checked, found


def require_thread(thread: str | None, *, latest: bool) -> None:
    """Raises UsageError unless the user named a thread, or asked for the latest one."""
    require_one({"THREAD": thread is not None, "--latest": latest})


async def thread_id_of(ledger: Ledger, thread: str | None, *, latest: bool) -> str:
    """The id that begins with `thread`, or that of the latest thread. An id that is there means itself, and one that is
    not is returned for the command to refuse. Raises UsageError unless one of the two is given, and for the beginning
    of several ids.

    Only commands that read use it. After a deletion, the id of the deleted thread may begin that of another.
    """
    from chatledger.errors import NotFound

    require_thread(thread, latest=latest)
    if thread is None:
        newest = await ledger.threads.list(limit=1)
        if newest.damaged:
            raise newest.damaged[0]
        if not newest.items:
            raise NotFound("there is no thread yet")
        return newest.items[0].thread_id
    ids = await ledger.threads.complete(thread, limit=SHOWN_IDS + 1) if thread else []
    if thread in ids or len(ids) < 2:
        return thread if thread in ids or not ids else ids[0]
    more = ", …" if len(ids) > SHOWN_IDS else ""
    raise UsageError(f"several threads begin with {thread!r}: {', '.join(ids[:SHOWN_IDS])}{more}")


async def thread_ids(ledger: Ledger, thread: str | None) -> AsyncIterator[str]:
    """The given thread, or all threads."""
    if thread is not None:
        yield thread
        return
    async for thread_id in ledger.threads.ids():
        yield thread_id
