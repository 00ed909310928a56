"""`branches list` and `branches activate`: the paths through a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.conversations.threads import require_thread, thread_id_of
from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import THREAD_HELP, Debug, Json, Latest, Tenant, Url, with_ledger
from chatledger.cli.output import moment, print_json, print_list, print_table

if TYPE_CHECKING:
    from chatledger.ledger import Ledger

app = typer.Typer(help="List branches, and choose the active one.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_branches(
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help=THREAD_HELP)] = None,
    latest: Latest = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List all branches of a thread, in the order of their creation."""

    async def work(ledger: Ledger) -> int:
        branches = await ledger.branches.list(await thread_id_of(ledger, thread, latest=latest))
        if as_json:
            print_list([branch.model_dump() for branch in branches])
        else:
            rows = [
                (
                    branch.branch,
                    "active" if branch.active else "",
                    branch.last_seq,
                    _origin(branch.forked_from, branch.forked_at),
                    moment(branch.created_at),
                )
                for branch in branches
            ]
            print_table(("branch", "state", "last seq", "forked from", "created"), rows)
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug, keyless=True, check=lambda: require_thread(thread, latest=latest))


def _origin(branch: int | None, seq: int | None) -> str:
    return "" if branch is None else f"branch {branch}, seq {seq}"


@app.command("activate")
def activate(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    branch: Annotated[
        int, typer.Argument(metavar="BRANCH", help="Number of the branch, as `branches list` prints it.")
    ],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a branch the active one, which commands and programs use by default."""

    async def work(ledger: Ledger) -> int:
        active = await ledger.branches.activate(thread, branch)
        if as_json:
            print_json(active.model_dump())
        else:
            say(f"branch {active.branch} of thread {thread!r} is active")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug)
