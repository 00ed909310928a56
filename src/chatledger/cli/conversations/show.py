"""`show`: print a conversation, or a part of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chatledger.cli.conversations.threads import require_thread, thread_id_of
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import THREAD_HELP, Branch, Debug, Json, Latest, Tenant, Url, with_ledger
from chatledger.cli.output import console, plural, print_json
from chatledger.cli.remarks import Remarks

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import ChatMessage, Cursor, Newest, Oldest, Thread
    from chatledger.repositories.history import History


def add_to(app: typer.Typer) -> None:
    app.command("show")(show)


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
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Print the messages as JSON in this format; `chatledger formats` lists them.",
        ),
    ] = None,
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

    With --format, prints the messages as they are stored in a provider's or framework's format, and on stderr what that
    format cannot express; with --json each loss, beside the payload. `prompt` prints what the model is sent.

    With --html, writes the same as a page that needs no server: with images and sound inside, and without scripts.

    Example: chatledger show --latest --newest 20
    """

    async def work(ledger: Ledger) -> int:
        thread_id = await thread_id_of(ledger, thread, latest=latest)
        thread_shown = await ledger.threads.get(thread_id)
        history = await ledger.messages.history(thread_id, _window(newest, limit, before, after), branch=branch)
        if html is not None:
            from chatledger.server.page.file import to_file

            _write(html, await to_file(ledger, thread_shown, history))
            say(f"wrote {plural(len(history), 'message')} to {html}")
            _say_neighbours(history, newest if newest is not None else limit)
        elif format is not None:
            _print_encoded(thread_shown, history, format, as_json=as_json)
            if not as_json:
                _say_neighbours(history, newest if newest is not None else limit)
        elif as_json:
            messages = [_with_text(message) for message in history]
            draft = None if history.draft is None else _with_text(history.draft)
            print_json({**_place_of(thread_shown, history), "messages": messages, "draft": draft})
        else:
            from chatledger.cli.conversations.render import render
            from chatledger.repositories.history import with_draft

            render(console(), thread_shown, with_draft(history), full=full)
            _say_neighbours(history, newest if newest is not None else limit)
        return ExitCode.OK

    def check() -> None:
        require_thread(thread, latest=latest)
        if html is not None and (as_json or format is not None):
            raise UsageError(f"give --html or {'--json' if as_json else '--format'}, not both")
        if format is not None:
            from chatledger.formats import get_codec

            get_codec(format)

    with_ledger(url, tenant, work, debug=debug, check=check)


def _with_text(message: ChatMessage) -> dict[str, object]:
    """The fields of a message, and its text, as over HTTP."""
    return {"role": message.role, "content": None, "text": message.text, **message.model_dump()}


def _place_of(thread: Thread, history: History) -> dict[str, object]:
    """The thread and the part of it that the window shows."""
    names = ("last_seq", "previous_cursor", "next_cursor")
    return {"thread": thread.model_dump(), **{name: getattr(history, name) for name in names}}


def _print_encoded(thread: Thread, history: History, format: str, *, as_json: bool) -> None:  # noqa: A002
    encoded = history.encode(format, as_="dicts")
    if as_json:
        losses = [asdict(loss) for loss in encoded.losses]
        print_json({**_place_of(thread, history), "payload": encoded.payload, "losses": losses})
        return
    print_json(encoded.payload)
    remarks = Remarks()
    remarks.add_losses(encoded.losses)
    for line in remarks.lines():
        say(line)
    if summary := remarks.summary():
        say(summary)


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
