"""`repair`: store results for calls that will never get one, and interrupt abandoned messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import plural, print_list, print_table
from chatledger.cli.progress import working
from chatledger.cli.threads import say_damaged, thread_ids
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import ChatMessage
    from chatledger.rules import Finding

PARTIAL = "R10"
"""The rule under which `check` reports a partial message."""

Repaired = dict[str, Any]
"""thread_id, branch, seq, what, detail."""


def add_to(app: typer.Typer) -> None:
    app.command("repair")(repair)


def repair(
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="The thread's id.", show_default="all threads")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the repairs without making them.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Close calls and messages that were left unfinished.

    Stores an "interrupted" result for each open call at the end of a branch, and marks abandoned partial messages as
    interrupted, so that any message can follow. It skips a branch whose last message is still being written. Nothing
    else changes, and a second run finds nothing to do.

    Stop your agents first: the command cannot tell a call that an agent is still working on from an abandoned one.

    With --dry-run, the exit code is 1 if there is anything to repair. A thread with damaged rows is reported and
    skipped, and the exit code is 1.
    """

    async def work(ledger: Ledger) -> int:
        from chatledger.storage.rows.messages import is_damage

        checked = 0
        done: list[Repaired] = []
        damaged: list[ChatLedgerError] = []
        with working("looking" if dry_run else "repairing", quiet=as_json):
            async for thread_id in thread_ids(ledger, thread):
                checked += 1
                try:
                    done += await _repair(ledger, thread_id, dry_run=dry_run)
                except ChatLedgerError as error:
                    if not is_damage(error):
                        raise
                    damaged.append(error)
        _report(checked, done, dry_run=dry_run, as_json=as_json)
        return ExitCode.FOUND if say_damaged(damaged) or (dry_run and done) else ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


async def _repair(ledger: Ledger, thread_id: str, *, dry_run: bool) -> list[Repaired]:
    """The repairs of each branch of the thread: made, or with `dry_run` only listed."""
    done: list[Repaired] = []
    for branch in await ledger.branches.list(thread_id):
        place = {"thread_id": thread_id, "branch": branch.branch}
        waiting = [one for one in await ledger.threads.check(thread_id, branch=branch.branch) if one.open]
        if any(one.rule == PARTIAL for one in waiting) and not await _is_abandoned(ledger, thread_id, branch.branch):
            say(f"branch {branch.branch} of thread {thread_id} skipped: its last message is still being written")
            continue
        done += [{**place, "seq": one.seq, **_said(one)} for one in waiting if dry_run or one.rule == PARTIAL]
        if waiting and not dry_run:
            appended = await ledger.messages.close_open_calls(thread_id, branch=branch.branch)
            done += [{**place, "seq": one.seq, "what": "result", "detail": _answered(one)} for one in appended.messages]
    return done


async def _is_abandoned(ledger: Ledger, thread_id: str, branch: int) -> bool:
    abandoned = await ledger.partials.abandoned()
    return any((partial.thread_id, partial.branch) == (thread_id, branch) for partial in abandoned)


def _said(finding: Finding) -> dict[str, str]:
    if finding.rule == PARTIAL:
        return {"what": "interrupted", "detail": "an abandoned partial message"}
    return {"what": "open call", "detail": finding.detail}


def _answered(result: ChatMessage) -> str:
    return f"stored {result.text!r} as the result of call {result.tool_call_id or 'without an id'} ({result.name})"


def _report(checked: int, done: list[Repaired], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_list(done, checked=checked, dry_run=dry_run)
        return
    if done:
        print_table(("thread", "branch", "seq", "what", "detail"), [tuple(one.values()) for one in done])
    verb = "to do" if dry_run else "done"
    say(f"{plural(checked, 'thread')} checked, {plural(len(done), 'repair') if done else 'nothing'} {verb}")
