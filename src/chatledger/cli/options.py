"""The options that every command has, and how a command is run with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chatledger.cli.exit_codes import UsageError, finish

if TYPE_CHECKING:
    from chatledger.ledger import Ledger
    from chatledger.storage.rows.keys import Keys

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="CHATLEDGER_URL",
        help="A path, sqlite:///… or postgresql://…; default: CHATLEDGER_URL, else chatledger.db.",
    ),
]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose conversations.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when it fails.")]

KEY_FILE: ContextVar[str | None] = ContextVar("chatledger_keys", default=None)
"""What `chatledger --keys FILE COMMAND …` was given: an option of the whole, as it means the same to every command."""


def run(command: Callable[[], int], *, debug: bool) -> None:
    """Run a command and leave with its exit code."""
    raise typer.Exit(finish(command, debug=debug))


def run_async(command: Callable[[], Coroutine[Any, Any, int]], *, debug: bool) -> None:
    run(lambda: asyncio.run(command()), debug=debug)


def given_keys() -> Keys | None:
    """The keys of the file that was named before the command or in the environment."""
    if (file := KEY_FILE.get()) is None:
        return None
    from chatledger.storage.rows.keys import read_keys

    require_files([file])
    return read_keys(file)


def with_ledger(
    url: str | None,
    tenant: str,
    work: Callable[[Ledger], Awaitable[int]],
    *,
    debug: bool,
    plaintext: bool = False,
) -> None:
    """Open a ledger that is there, work, close, and leave with the exit code. A slip in the name of a file is not
    answered with a new, empty ledger.
    """

    async def opened() -> int:
        from chatledger import Ledger

        _require_file(url)
        async with Ledger.open(url, tenant=tenant, keys=given_keys(), plaintext=plaintext) as ledger:
            return await work(ledger)

    run_async(opened, debug=debug)


def _require_file(url: str | None) -> None:
    from chatledger.errors import StorageError

    path = file_path(url)
    if path is not None and not Path(path).exists():
        raise StorageError(f"there is no database {path}; chatledger import, migrate and demo make one")


def file_path(url: str | None) -> str | None:
    """The file of a SQLite database; None for one in memory or on a server."""
    from chatledger.storage.drivers.urls import MEMORY, read_url, sqlite_path

    address = read_url(url)
    if address.get_backend_name() != "sqlite":
        return None
    path = sqlite_path(address)
    return None if path == MEMORY else path


def require_files(files: Sequence[str]) -> None:
    """Raises UsageError for what is no file to read; - is standard input."""
    for file in files:
        if file != "-" and Path(file).is_dir():
            raise UsageError(f"{file} is a folder; give its files")
        if file != "-" and not Path(file).exists():
            raise UsageError(f"there is no file {file}")


def require_folder(output: str | None) -> None:
    """Raises UsageError for a file that cannot be written because there is no folder for it; None is stdout."""
    if output is not None and not Path(output).parent.is_dir():
        raise UsageError(f"cannot write {output}: there is no folder {Path(output).parent}")
    if output is not None and Path(output).is_dir():
        raise UsageError(f"cannot write {output}: it is a folder")


def require_one(given: dict[str, bool]) -> None:
    """Raises UsageError unless exactly one of the alternatives is given."""
    if sum(given.values()) != 1:
        raise UsageError(f"give {' or '.join(given)}" + (", not both" if any(given.values()) else ""))
