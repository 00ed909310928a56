"""`mcp`: the conversations as tools of a model, over standard input and output."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Tenant, Url, given_keys, require_one, with_ledger
from chatledger.errors import MissingExtra


def add_to(app: typer.Typer) -> None:
    app.command("mcp")(mcp)


def mcp(
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Show this user's threads only.")] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="Show the threads of all users.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    debug: Debug = False,
) -> None:
    """Let an MCP client search, list and read conversations, and change none. The client starts and ends it."""

    async def command(ledger: Any) -> int:
        await ledger.close()  # it was opened to find what is wrong with the database, and could write
        try:
            from chatledger.mcp import serve
        except ImportError:
            raise MissingExtra("mcp", "chatledger mcp") from None
        try:
            await asyncio.shield(serve(url, tenant, given_keys(), user))
        except asyncio.CancelledError:  # by Ctrl-C: a thread waits for input, and Python would wait for the thread
            say("interrupted")
            os._exit(ExitCode.INTERRUPTED)
        return ExitCode.OK

    whose = {"--user USER": user is not None, "--all-users": all_users}
    with_ledger(url, tenant, command, debug=debug, check=lambda: require_one(whose))
