"""`runs list`, `show`, `stop`, `resume` and `delete`: the executions of agents. `usage.py` adds `runs usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chatledger.cli.conversations.threads import chosen_thread, print_page, say_damaged
from chatledger.cli.exit_codes import ExitCode, UsageError
from chatledger.cli.options import Cursor, Debug, Json, Limit, OnlyThread, Tenant, Url, run, with_ledger
from chatledger.cli.output import moment, plural, print_json, print_list, print_table, short
from chatledger.errors import RunNotFound

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Page, Run

app = typer.Typer(
    help="List, show, stop, resume and delete runs, and sum their usage.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_runs(
    thread: OnlyThread = None,
    status: Annotated[
        Literal["running", "completed", "failed", "cancelled"] | None,
        typer.Option("--status", help="Only runs with this status."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Only answers that have not ended: working, paused, or left.")
    ] = False,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List runs by their ids, or with --live by their start. SINCE is when one paused, or its process was lost.

    With --status, a page may be empty although more follow: read on while there is a cursor.

    Example: chatledger runs list --status failed
    """

    async def work(ledger: Ledger) -> int:
        chosen = await chosen_thread(ledger, thread)
        if live:
            return await _list_live(ledger, chosen, limit, cursor, as_json=as_json)
        page = await ledger.runs.list(thread_id=chosen, status=status, limit=limit, cursor=cursor)
        if as_json:
            print_list([listed.model_dump() for listed in page], page.next_cursor)
        else:
            rows = [
                (
                    listed.run_id,
                    listed.thread_id,
                    listed.agent,
                    listed.model,
                    listed.status,
                    _tokens(listed),
                    moment(listed.started_at),
                )
                for listed in page
            ]
            print_page(("run", "thread", "agent", "model", "status", "tokens", "started"), rows, page, "no runs")
        return say_damaged(page.damaged)

    if live and status is not None:
        run(_both_live_and_status, debug=debug)
    with_ledger(url, tenant, work, debug=debug)


def _both_live_and_status() -> int:
    raise UsageError("--live lists running answers only; leave --status out")


async def _list_live(ledger: Ledger, thread: str | None, limit: int, cursor: str | None, *, as_json: bool) -> int:
    from chatledger.annexes import load
    from chatledger.repositories import scope_of

    list_live = load("chatledger.answers.live:list_live", "runs list --live")
    page: Page[Any] = await list_live(scope_of(ledger), thread, limit, cursor)
    if as_json:
        print_list([answer.run.model_dump() | _of_lease(answer) for answer in page], page.next_cursor)
    else:
        rows = [
            (
                answer.run.run_id,
                answer.run.thread_id,
                answer.user_id,
                answer.run.agent,
                short(f"waits for {', '.join(answer.waiting)}", 60) if answer.state == "paused" else answer.state,
                moment({"paused": answer.paused_at, "left": answer.until}.get(answer.state)),
                answer.attempt,
                moment(answer.run.started_at),
            )
            for answer in page
        ]
        headings = ("run", "thread", "user", "agent", "state", "since", "attempt", "started")
        print_page(headings, rows, page, "no live answers")
    return say_damaged(page.damaged)


def _of_lease(answer: Any) -> dict[str, object]:
    own = ("user_id", "attempt", "state", "paused_at", "until")
    return {**{name: getattr(answer, name) for name in own}, "waiting": dict(answer.waiting)}


@app.command("show")
def show_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a run: its status, times, usage, input, metadata and error."""

    async def work(ledger: Ledger) -> int:
        shown_run = await ledger.runs.get(run_id)
        if as_json:
            print_json(shown_run.model_dump())
        else:
            fields = shown_run.model_dump(exclude={"usage"}) | (shown_run.usage.model_dump() if shown_run.usage else {})
            rows = [(name, _shown(value)) for name, value in fields.items() if value is not None]
            rows += [("waits for", _waiting(*call)) for call in (await _waiting_calls(ledger, run_id)).items()]
            print_table(("field", "value"), rows)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


@app.command("stop")
def stop_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run of an answer.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """End an answer as cancelled, whichever process works on it. What it wrote stays."""

    async def work(ledger: Ledger) -> int:
        stopped = await ledger.answers.stop(run_id)
        if as_json:
            print_json(stopped.model_dump())
        else:
            print(f"{run_id} is {stopped.status}")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


@app.command("resume")
def resume_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run of a paused answer.")],
    approve: Annotated[list[str] | None, typer.Option("--approve", metavar="CALL", help="Run this call.")] = None,
    refuse: Annotated[list[str] | None, typer.Option("--refuse", metavar="CALL", help="Do not run this call.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for the model.")] = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Approve or refuse calls for which an answer is paused, by the ids that `runs show` prints.

    Example: chatledger runs resume RUN --approve call_1 --refuse call_2 --reason "too dear"
    """

    async def work(ledger: Ledger) -> int:
        answer = await ledger.answers.resume(run_id, approve=approve or [], refuse=dict.fromkeys(refuse or [], reason))
        if as_json:
            print_json({"run": answer.run.model_dump(), "waiting": dict(answer.waiting)})
        elif answer.waiting:
            print(f"{run_id} still waits for {', '.join(answer.waiting)}")
        else:
            print(f"{run_id} goes on in a process that serves {answer.run.agent}")
        return ExitCode.OK

    if reason is not None and not refuse:
        run(_nothing_refused, debug=debug)
    with_ledger(url, tenant, work, debug=debug)


def _nothing_refused() -> int:
    raise UsageError("--reason is about refused calls; add --refuse CALL")


async def _waiting_calls(ledger: Ledger, run_id: str) -> Mapping[str, str | None]:
    """The calls for which an answer is paused."""
    try:
        return (await ledger.answers.get(run_id)).waiting
    except RunNotFound:  # a run that answers no question
        return {}


def _waiting(call_id: str, reason: str | None) -> str:
    return call_id if reason is None else f"{call_id}: {short(reason, 200)}"


@app.command("delete")
def delete_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the removal. Required.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Permanently delete a run, with its scores. Its messages stay, and belong to no run."""

    async def work(ledger: Ledger) -> int:
        deleted = await ledger.runs.delete(run_id)
        if as_json:
            print_json(deleted.model_dump())
        else:
            print(f"deleted {run_id} and {plural(deleted.rows['feedback'], 'score')}")
        return ExitCode.OK

    if not yes:
        run(_unconfirmed, debug=debug)
    with_ledger(url, tenant, work, debug=debug, keyless=True)


def _unconfirmed() -> int:
    raise UsageError("the removal cannot be undone; add --yes to confirm it")


def _tokens(run: Run) -> int | None:
    if run.usage is None or run.usage.total_tokens is not None:
        return None if run.usage is None else run.usage.total_tokens
    counted = [count for count in (run.usage.input_tokens, run.usage.output_tokens) if count is not None]
    return sum(counted) if counted else None


def _shown(value: object) -> str:
    from datetime import datetime

    from chatledger.models.json import dumps

    if isinstance(value, datetime):
        return moment(value)
    return short(dumps(value), 200) if isinstance(value, (dict, list)) else str(value)
