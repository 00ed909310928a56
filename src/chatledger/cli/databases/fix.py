"""`check --fix`: store results for calls that will never get one, and interrupt abandoned drafts."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chatledger.cli.conversations.threads import say_damaged, thread_ids
from chatledger.cli.escape import one_line
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import in_ledger
from chatledger.cli.output import plural, print_list, print_table
from chatledger.cli.progress import working
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import ChatMessage
    from chatledger.rules import Finding

PARTIAL = "R10"
"""The rule under which `check` reports a partial message."""

Repaired = dict[str, Any]
"""thread_id, branch, seq, what, detail."""


def make_repairs(url: str | None, tenant: str, thread: str | None, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Make the repairs of the thread, or of all threads: after `yes`, or after the answer to a question. With `dry_run`
    they are only listed. Raises UsageError if nobody can be asked.
    """

    def walk(*, dry_run: bool) -> _Repairs:
        repairs = in_ledger(url, tenant, lambda ledger: _walk(ledger, thread, dry_run=dry_run, quiet=as_json))
        _report(repairs, as_json=as_json)
        return repairs

    if not (yes or dry_run or (can_ask() and not as_json)):
        raise UsageError("--fix writes: add --yes to confirm it, or --dry-run to see what it would write")
    repairs = walk(dry_run=dry_run or not yes)
    if repairs.done and not (yes or dry_run) and agreed(f"make {plural(len(repairs.done), 'repair')}?"):
        repairs = walk(dry_run=False)
    return ExitCode.FOUND if repairs.damaged or (repairs.dry_run and repairs.done) else ExitCode.OK


@dataclass(slots=True)
class _Repairs:
    """The repairs of a walk through the threads: made, or with `dry_run` only listed."""

    dry_run: bool
    checked: int = 0
    done: list[Repaired] = field(default_factory=list)
    damaged: list[ChatLedgerError] = field(default_factory=list)


async def _walk(ledger: Ledger, thread: str | None, *, dry_run: bool, quiet: bool) -> _Repairs:
    from chatledger.storage.rows.decode_messages import is_damage

    repairs = _Repairs(dry_run)
    with working("looking" if dry_run else "repairing", quiet=quiet):
        async for thread_id in thread_ids(ledger, thread):
            repairs.checked += 1
            try:
                repairs.done += await _repair(ledger, thread_id, dry_run=dry_run)
            except ChatLedgerError as error:
                if not is_damage(error):
                    raise
                repairs.damaged.append(error)
    return repairs


async def _repair(ledger: Ledger, thread_id: str, *, dry_run: bool) -> list[Repaired]:
    """The repairs of each branch of the thread: made, or with `dry_run` only listed."""
    from chatledger.repositories import scope_of
    from chatledger.storage.check.branch import check_thread

    done: list[Repaired] = []
    for branch in await ledger.branches.list(thread_id):
        place = {"thread_id": thread_id, "branch": branch.branch}
        waiting = [
            finding for finding in await check_thread(scope_of(ledger), thread_id, branch.branch) if finding.open
        ]
        if any(finding.rule == PARTIAL for finding in waiting) and not await _is_abandoned(
            ledger, thread_id, branch.branch
        ):
            say(f"branch {branch.branch} of thread {thread_id} skipped: its last message is still being written")
            continue
        done += [
            {**place, "seq": finding.seq, **_of_finding(finding)}
            for finding in waiting
            if dry_run or finding.rule == PARTIAL
        ]
        if waiting and not dry_run:
            appended = await ledger.messages.close_open_calls(thread_id, branch=branch.branch)
            done += [
                {**place, "seq": message.seq, "what": "result", "detail": _answered(message)}
                for message in appended.messages
            ]
    return done


async def _is_abandoned(ledger: Ledger, thread_id: str, branch: int) -> bool:
    abandoned = await ledger.drafts.list(abandoned_for=0)
    return any((draft.thread_id, draft.branch) == (thread_id, branch) for draft in abandoned)


def _of_finding(finding: Finding) -> dict[str, str]:
    if finding.rule == PARTIAL:
        return {"what": "interrupted", "detail": "an abandoned draft"}
    return {"what": "open call", "detail": finding.detail}


def _answered(result: ChatMessage) -> str:
    return f"stored {result.text!r} as the result of call {result.tool_call_id or 'without an id'} ({result.name})"


def _report(walked: _Repairs, *, as_json: bool) -> None:
    if as_json:
        print_list(walked.done, checked=walked.checked, dry_run=walked.dry_run)
    else:
        if walked.done:
            print_table(
                ("thread", "branch", "seq", "what", "detail"), [tuple(repair.values()) for repair in walked.done]
            )
        verb = "to do" if walked.dry_run else "done"
        repairs = plural(len(walked.done), "repair") if walked.done else "nothing"
        say(f"{plural(walked.checked, 'thread')} checked, {repairs} {verb}")
    say_damaged(walked.damaged)


def can_ask() -> bool:
    """Whether a person reads stderr and types on stdin."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Whether the answer is y or yes; the end of the input is a no. Ask outside of an event loop, which would keep
    Ctrl-C from ending the question.
    """
    sys.stdout.flush()
    sys.stderr.write(f"chatledger: {one_line(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
