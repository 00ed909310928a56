"""`runs list` and `runs show`: the executions of agents. `usage.py` adds `runs usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.conversations.threads import chosen_thread, print_page, say_damaged
from chatledger.cli.exit_codes import ExitCode
from chatledger.cli.options import Cursor, Debug, Json, Limit, OnlyThread, Tenant, Url, with_ledger
from chatledger.cli.output import moment, print_json, print_list, print_table, short

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.models import Run

app = typer.Typer(help="List and show runs, and sum their usage.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_runs(
    thread: OnlyThread = None,
    status: Annotated[
        Literal["running", "completed", "failed", "cancelled"] | None,
        typer.Option("--status", help="Only runs with this status."),
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List runs, in the order of their ids. For ids that the ledger makes, that is by time.

    With --status, a page may be empty although more follow: read on while there is a cursor.

    Example: chatledger runs list --status failed
    """

    async def work(ledger: Ledger) -> int:
        chosen = await chosen_thread(ledger, thread)
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

    with_ledger(url, tenant, work, debug=debug)


@app.command("show")
def show_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a run: its status, times, usage, input, metadata and error."""

    async def work(ledger: Ledger) -> int:
        shown_run = await ledger.runs.get(run)
        if as_json:
            print_json(shown_run.model_dump())
        else:
            fields = shown_run.model_dump(exclude={"usage"}) | (shown_run.usage.model_dump() if shown_run.usage else {})
            rows = [(name, _shown(value)) for name, value in fields.items() if value is not None]
            print_table(("field", "value"), rows)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)


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
