"""`delete`, `erase`, `erase-message` and `delete-inactive`: permanent removal."""

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
    from chatledger.models import ChatMessage, Erasure
    from chatledger.repositories.erasures import Owner

REMOVALS = frozenset(["delete", "erase", "erase-message", "delete-inactive"])
"""The commands of this module. A wrong word is never answered with one of them."""
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


Yes = Annotated[bool, typer.Option("--yes", help="Confirm the removal. Required, unless --dry-run is given.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be removed, without removing it.")]


def add_to(app: typer.Typer) -> None:
    app.command("delete")(delete)
    app.command("erase")(erase)
    app.command("erase-message")(erase_message)
    app.command("delete-inactive")(delete_inactive)


def delete(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Permanently delete a thread, with its messages, runs and scores.

    The id may be used again. To keep it from being used again, for a request to be forgotten, use erase.
    """

    async def work(ledger: Ledger) -> int:
        deleted = await ledger.threads.delete(thread, dry_run=dry_run)
        if as_json:
            print_json(deleted.model_dump() | {"dry_run": dry_run})
        else:
            _say_rows(deleted.rows, dry_run=dry_run)
        return ExitCode.OK

    if not (yes or dry_run):
        run(_unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug, keyless=True)


def erase(
    thread: Annotated[str | None, typer.Option("--thread", metavar="THREAD", help="Erase one thread.")] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="Erase every thread of this user, and the user's other data."),
    ] = None,
    whole_tenant: Annotated[
        bool, typer.Option("--whole-tenant", help="Erase every thread of the tenant, and its other data.")
    ] = False,
    keep_scores: Annotated[
        bool, typer.Option("--keep-scores", help="Keep feedback scores, without comments and ids.")
    ] = False,
    even_if_unknown: Annotated[
        bool,
        typer.Option(
            "--even-if-unknown", help="With --user or --whole-tenant: leave a tombstone even if nothing is stored."
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Permanently erase a thread, a user or a tenant.

    Each erased thread leaves a tombstone without its content, so that its id cannot be used again; `erasures` lists
    the tombstones. A user or tenant of whom nothing is stored is refused, because the name may be a typing error.

    Example: chatledger erase --user ada --dry-run
    """

    async def work(ledger: Ledger) -> int:
        with working("counting" if dry_run else "erasing", quiet=as_json):
            if thread is None and not even_if_unknown:
                await _require_known(ledger, user, tenant)
            erasure = await _erase(ledger, thread, user, keep_scores=keep_scores, dry_run=dry_run)
        _say_erased(erasure, dry_run=dry_run, as_json=as_json)
        return ExitCode.OK

    if (thread is not None) + (user is not None) + whole_tenant != 1:
        run(lambda: _refuse("give one of --thread, --user and --whole-tenant"), debug=debug)
    if thread is not None and even_if_unknown:
        run(lambda: _refuse("--even-if-unknown goes with --user or --whole-tenant"), debug=debug)
    if not (yes or dry_run):
        run(_unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug, keyless=True)


def erase_message(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    message: Annotated[str, typer.Argument(metavar="ID", help="The message's id, as `show --json` prints it.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Permanently remove the content of one message. Its position, ids and links remain.

    Of a message that was removed, the content goes from its revisions.
    """

    async def work(ledger: Ledger) -> int:
        erased = await ledger.messages.erase(thread, message, dry_run=dry_run)
        if as_json:
            print_json(erased.model_dump() | {"dry_run": dry_run})
        elif dry_run:
            words = _words_of(await _now(ledger, thread, message) or erased)
            say(f"message {message} of {thread} has {words} to erase; dry run, nothing is written")
        else:
            say(f"the content of message {message} of {thread} is erased")
        return ExitCode.OK

    if not (yes or dry_run):
        run(_unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug)


def delete_inactive(
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="Age in hours, days or weeks, such as 12h, 90d or 52w."),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Permanently delete threads whose last write is older than AGE.

    An import is a write: an imported thread counts from its import, however old its messages are.

    Example: chatledger delete-inactive --older-than 90d --dry-run
    """

    async def work(ledger: Ledger) -> int:
        with working("counting" if dry_run else "deleting", quiet=as_json):
            deleted = await ledger.threads.delete_inactive(older_than=_age(older_than), dry_run=dry_run)
        if as_json:
            print_json(deleted.model_dump() | {"dry_run": dry_run})
        else:
            _say_rows(deleted.rows, dry_run=dry_run)
        return ExitCode.OK

    def unconfirmed() -> int:
        _age(older_than)  # a bad age is reported before the missing --yes
        return _unconfirmed()

    if not (yes or dry_run):
        run(unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug, keyless=True)


async def _erase(ledger: Ledger, thread: str | None, user: str | None, *, keep_scores: bool, dry_run: bool) -> Erasure:
    owner: Owner = ("tenant",) if user is None else ("user", user)
    if thread is not None:
        owner = ("thread", thread)
    return await ledger.erasures.erase(owner, keep_scores=keep_scores, dry_run=dry_run)


async def _require_known(ledger: Ledger, user: str | None, tenant: str) -> None:
    """Raises NotFound for a user or a tenant of whom neither rows nor a tombstone are stored."""
    from chatledger.errors import NotFound

    expected = await _erase(ledger, None, user, keep_scores=False, dry_run=True)
    if not any(expected.rows.values()) and not await _is_erased(ledger, user):
        whom = f"tenant {tenant!r}" if user is None else f"user {user!r} of tenant {tenant!r}"
        raise NotFound(f"nothing of {whom} is stored; add --even-if-unknown to leave a tombstone all the same")


async def _is_erased(ledger: Ledger, user: str | None) -> bool:
    if user is not None:
        return await ledger.erasures.find(("user", user)) is not None
    page = await ledger.erasures.list(limit=1)
    return bool(page.items or page.damaged)


async def _now(ledger: Ledger, thread: str, message: str) -> ChatMessage | None:
    """The message as it is stored, or as it was when it was removed."""
    from chatledger.errors import MessageNotFound

    try:
        return await ledger.messages.get(thread, message)
    except MessageNotFound:
        return (await ledger.messages.revisions(thread, message))[-1].message


def _words_of(message: ChatMessage) -> str:
    parts = sum(len(field) for field in (message.content, message.reasoning) if isinstance(field, list))
    thought = len(message.reasoning) if isinstance(message.reasoning, str) else 0
    counted = ((len(message.text) + thought, "character"), (parts, "part"), (len(message.tool_calls or ()), "call"))
    return ", ".join(plural(count, noun) for count, noun in counted if count) or "no words"


def _say_erased(erasure: Erasure, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json(erasure.model_dump() | {"dry_run": dry_run})
        return
    _say_rows(erasure.rows, dry_run=dry_run)
    if erasure.scores:
        say(f"{plural(erasure.scores, 'score')} {'to keep' if dry_run else 'kept'}, without comments")


def _say_rows(rows: Mapping[str, int], *, dry_run: bool) -> None:
    gone = [(table, f"{count:,}") for table, count in rows.items() if count]
    if gone:
        print_table(("table", "rows to remove" if dry_run else "rows removed"), gone)
    else:
        say("nothing to remove")
    if dry_run:
        say("dry run, nothing is written")


def _unconfirmed() -> int:
    return _refuse("the removal cannot be undone; add --yes to confirm it, or --dry-run to see what it would remove")


def _refuse(text: str) -> int:
    raise UsageError(text)


def _age(text: str) -> timedelta:
    age = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if age is None:
        raise UsageError(f"--older-than takes an age such as 12h, 90d or 52w, not {text!r}")
    return timedelta(**{_UNITS[age[2]]: int(age[1])})
