"""`threads`, `archive`, `show` and `check`: list, archive, print and check stored threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import (
    THREAD_HELP,
    Branch,
    Debug,
    Json,
    Latest,
    Tenant,
    Url,
    require_one,
    seen_by,
    with_ledger,
)
from chatledger.cli.output import console, moment, plural, print_json, print_list, print_table, short
from chatledger.cli.progress import share_bar
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Cursor, Newest, Oldest, Page, Thread
    from chatledger.repositories.history import History, PromptFormat
    from chatledger.storage.repositories.thread_list import ThreadOrder


SHOWN_IDS = 5


def add_to(app: typer.Typer) -> None:
    app.command("threads")(threads)
    app.command("archive")(archive)
    app.command("show")(show)
    app.command("check")(check)


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
            print_list([one.model_dump() for one in page], page.next_cursor)
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
        (one.thread_id, one.user_id, f"{one.message_count:,}", moment(one.active_at), short(one.title or one.preview))
        for one in page
    ]
    print_page(("thread", "user", "messages", "active", "title or preview"), rows, page, "no threads")


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
        found = await ledger.threads.update(thread, archived=not undo)
        if as_json:
            print_json(found.model_dump())
        else:
            say(f"thread {thread!r} is {'listed again' if undo else 'archived'}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


def show(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    branch: Branch = None,
    newest: Annotated[
        int | None,
        typer.Option(
            "--newest",
            metavar="N",
            min=0,
            help="Print the N newest messages, or the N before --before. May print more, to keep calls with their "
            "results.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help="Print N messages: the first ones, or those after --after.",
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="CURSOR", help="Print only messages before this cursor, or seq of --branch."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="CURSOR", help="Print only messages after this cursor, or seq of --branch."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print long texts in full.")] = False,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write the conversation to FILE as one page for a browser."),
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a conversation with its calls, results and broken rules.

    Prints the whole branch, or the part that --newest, --limit, --before and --after choose. The options for
    the neighbouring pages are then printed on stderr, or as cursors with --json.

    With --html, writes the same as a page that needs no server: with images and sound inside, and without scripts.

    Example: chatledger show --latest --newest 20
    """

    async def work(ledger: Ledger) -> int:
        thread_id = await thread_id_of(ledger, thread, latest=latest)
        found = await ledger.threads.get(thread_id)
        history = await ledger.messages.history(thread_id, _window(newest, limit, before, after), branch=branch)
        if html is not None:
            from chatledger.server.page.file import to_file

            _write(html, await to_file(ledger, found, history))
            say(f"wrote {plural(len(history), 'message')} to {html}")
            _say_neighbours(history, newest if newest is not None else limit)
        elif as_json:
            cursors = {"previous_cursor": history.previous_cursor, "next_cursor": history.next_cursor}
            messages = [message.model_dump() for message in history]
            draft = None if history.draft is None else history.draft.model_dump()
            shown = {"last_seq": history.last_seq, **cursors, "messages": messages, "draft": draft}
            print_json({"thread": found.model_dump(), **shown})
        else:
            from chatledger.cli.render import render
            from chatledger.repositories.history import with_draft

            render(console(), found, with_draft(history), full=full)
            _say_neighbours(history, newest if newest is not None else limit)
        return ExitCode.OK

    def check() -> None:
        require_thread(thread, latest=latest)
        if html is not None and as_json:
            raise UsageError("give --html or --json, not both")

    with_ledger(url, tenant, work, debug=debug, check=check)


def _write(file: str, text: str) -> None:
    from chatledger.storage.drivers.new_file import text_file

    with text_file(file) as stream:
        stream.write(text)


def _window(newest: int | None, limit: int | None, before: str | None, after: str | None) -> Newest | Oldest | None:
    """Raises UsageError for options that do not go together."""
    if (newest is not None and limit is not None) or (before is not None and after is not None):
        raise UsageError("give --newest with --before, or --limit with --after")
    from chatledger import Newest, Oldest
    from chatledger.models.windows import MOST

    if after is not None or limit is not None:
        if before is not None or newest is not None:
            raise UsageError("give --newest with --before, or --limit with --after")
        return Oldest(MOST if limit is None else limit, after=_position(after))
    if newest is None and before is None:
        return None
    return Newest(MOST if newest is None else newest, before=_position(before))


def _position(text: str | None) -> Cursor | int | None:
    return None if text is None else int(text) if text.isdecimal() else cast("Cursor", text)


def _say_neighbours(history: History, size: int | None) -> None:
    """Print the options that show the messages before and after this page, in pages of the same size."""
    if history.previous_cursor is not None:
        say(f"earlier messages: {'' if size is None else f'--newest {size} '}--before {history.previous_cursor}")
    if history.next_cursor is not None:
        say(f"later messages: {'' if size is None else f'--limit {size} '}--after {history.next_cursor}")


def check(
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP, show_default="all threads")
    ] = None,
    latest: Latest = False,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="FORMAT",
            help="List instead what the provider behind this format would refuse, e.g. anthropic.",
        ),
    ] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find errors in stored conversations.

    Lists damaged cells, broken rules, calls without a result and abandoned partial messages; the exit code is 1 if
    there are any. Findings of severity "advice" do not change the exit code: they name an order of roles, or arguments
    of calls, that some providers refuse.

    With --provider, list what that provider would refuse in the conversations as they are stored, and why. The exit
    code is 1 if there is anything to list. `history --view model` repairs all of it except damaged cells.

    Example: chatledger check --provider anthropic
    """

    async def work(ledger: Ledger) -> int:
        chosen = await thread_id_of(ledger, thread, latest=latest) if latest or thread is not None else None
        with share_bar("checking", quiet=as_json) as progress:
            checked, found = await (
                _check(ledger, chosen, progress) if provider is None else _refused(ledger, chosen, provider)
            )
        errors = [one for one in found if one.get("severity") != "advice"]
        if as_json:
            print_list(found, checked=checked)
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
    """The number of threads checked, and the findings that the provider would refuse."""
    from chatledger.errors import NothingToSend
    from chatledger.formats.model_view import get_provider, is_refusal
    from chatledger.storage.rows.messages import is_damage

    get_provider(provider)  # an unknown provider is an error even if there is no thread
    checked = 0
    found: list[dict[str, object]] = []
    async for thread_id in thread_ids(ledger, thread):
        checked += 1
        try:
            viewed = await ledger.messages.prompt(thread_id, cast("PromptFormat", provider))
        except NothingToSend as error:
            if error.reasons:  # without reasons the thread has no messages yet, which is no fault
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
    from chatledger.storage.repositories.thread_ids import ids_with_prefix

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
    from chatledger.storage.repositories.thread_ids import iterate_ids

    if thread is not None:
        yield thread
        return
    async for thread_id in iterate_ids(scope_of(ledger)):
        yield thread_id
