"""`check`: find errors in stored threads, and repair what was left unfinished."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chatledger.cli.conversations.threads import thread_id_of, thread_ids
from chatledger.cli.databases.fix import make_repairs
from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import THREAD_HELP, Debug, Json, Latest, Tenant, Url, in_ledger, run
from chatledger.cli.output import plural, print_list, print_table
from chatledger.cli.progress import share_bar
from chatledger.errors import ChatLedgerError

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.repositories.history import PromptFormat


def add_to(app: typer.Typer) -> None:
    app.command("check")(check)


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
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Store results for open calls and interrupt abandoned drafts, after a question."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --fix: print the repairs without making them.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="With --fix: repair without a question. Required, unless a terminal can be asked."),
    ] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find errors in stored conversations.

    Lists damaged cells, broken rules, calls without a result and abandoned drafts; the exit code is 1 if there are any.
    Findings of severity "advice" do not change the exit code: they name an order of roles, or arguments of calls, that
    some providers refuse.

    With --provider, list what that provider would refuse in the conversations as they are stored, and why. The exit
    code is 1 if there is anything to list. `prompt` repairs all of it except damaged cells.

    With --fix, stores an "interrupted" result for each open call at the end of a branch, and marks abandoned drafts as
    interrupted, so that any message can follow. It skips a branch whose last message is still being written. Nothing
    else changes, and a second run finds nothing to do. Stop your agents first: the command cannot tell a call that an
    agent is still working on from an abandoned one. It takes the whole id of THREAD. The exit code is 1 if there is
    anything that was not repaired: with --dry-run, after the answer no, or in a thread with damaged rows.

    Example: chatledger check --provider anthropic
    """

    async def work(ledger: Ledger) -> int:
        chosen = await thread_id_of(ledger, thread, latest=latest) if latest or thread is not None else None
        with share_bar("checking", quiet=as_json) as progress:
            checked, findings = await (
                _check(ledger, chosen, progress) if provider is None else _refused(ledger, chosen, provider)
            )
        errors = [finding for finding in findings if finding.get("severity") != "advice"]
        if as_json:
            print_list(findings, checked=checked)
        else:
            if findings:
                headings = ["reason"] if provider is not None else ["severity", "rule", "state"]
                print_table(("thread", "seq", *headings, "detail"), [tuple(finding.values()) for finding in findings])
            advice = [f"{len(findings) - len(errors):,} advice"] if len(errors) < len(findings) else []
            counts = [plural(len(errors), "error" if provider is None else "finding")] if errors else []
            say(f"{plural(checked, 'thread')} checked, {', '.join([*counts, *advice]) or 'all well'}")
        return ExitCode.FOUND if errors else ExitCode.OK

    def command() -> int:
        if (dry_run or yes) and not fix:
            raise UsageError(f"{'--dry-run' if dry_run else '--yes'} goes with --fix")
        if not fix:
            return in_ledger(url, tenant, work)
        if latest or provider is not None:
            raise UsageError(f"give --fix or {'--latest' if latest else '--provider'}, not both")
        return make_repairs(url, tenant, thread, dry_run=dry_run, yes=yes, as_json=as_json)

    run(command, debug=debug)


async def _check(
    ledger: Ledger, thread: str | None, progress: Callable[[int, int], None]
) -> tuple[int, list[dict[str, object]]]:
    """The number of threads checked, and the findings."""
    checked = 0
    findings: list[dict[str, object]] = []
    async for checked_thread in ledger.check(thread, progress=progress):
        checked += checked_thread.thread_id is not None
        findings += [
            {
                "thread_id": checked_thread.thread_id,
                "seq": finding.seq,
                "severity": finding.severity,
                "rule": finding.rule,
                "state": "open" if finding.open else "broken",
                "detail": finding.detail,
            }
            for finding in checked_thread.findings
        ]
    return checked, findings


async def _refused(ledger: Ledger, thread: str | None, provider: str) -> tuple[int, list[dict[str, object]]]:
    """The number of threads checked, and the findings that the provider would refuse."""
    from chatledger.errors import NothingToSend
    from chatledger.formats.model_view import get_provider, is_refusal
    from chatledger.storage.rows.decode_messages import is_damage

    get_provider(provider)  # an unknown provider is an error even if there is no thread
    checked = 0
    findings: list[dict[str, object]] = []
    async for thread_id in thread_ids(ledger, thread):
        checked += 1
        try:
            viewed = await ledger.messages.prompt(thread_id, cast("PromptFormat", provider))
        except NothingToSend as error:
            if error.reasons:  # without reasons the thread has no messages yet, which is no fault
                empty = {"seq": None, "reason": "nothing-to-send", "detail": str(error)}
                findings.append({"thread_id": thread_id, **empty})
            continue
        except ChatLedgerError as error:
            if not is_damage(error):
                raise
            findings.append({"thread_id": thread_id, "seq": None, "reason": "damaged", "detail": str(error)})
            continue
        findings += [
            {"thread_id": thread_id, "seq": repair.seq, "reason": repair.code, "detail": repair.detail}
            for repair in viewed.repairs
            if is_refusal(repair)
        ]
    return checked, findings
