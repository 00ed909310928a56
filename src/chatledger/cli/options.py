"""The options that commands share, and the functions that run a command with them."""

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
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant whose conversations to use.")]
THREAD_HELP = "The thread's id, or as much of its beginning as no other has."
Latest = Annotated[bool, typer.Option("--latest", help="The thread with the newest activity.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback if the command fails.")]

KEY_FILE: ContextVar[str | None] = ContextVar("chatledger_keys", default=None)
"""FILE of `chatledger --keys FILE COMMAND …`. It comes before the command, since it means the same to each of them."""


def run(command: Callable[[], int], *, debug: bool) -> None:
    """Run a command and exit with its code."""
    raise typer.Exit(finish(command, debug=debug))


def run_async(command: Callable[[], Coroutine[Any, Any, int]], *, debug: bool) -> None:
    run(lambda: asyncio.run(command()), debug=debug)


def given_keys() -> Keys | None:
    """Read the file named by --keys or CHATLEDGER_KEYS; None if there is neither."""
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
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` on an existing ledger and exit with the code that it returns. `check` judges the arguments before the
    ledger is opened.

    A missing file is an error: a typo in its name must not create a new, empty ledger.
    """

    async def opened() -> int:
        from chatledger import Ledger

        check()
        _require_file(url)
        async with Ledger.open(url, tenant=tenant, keys=given_keys(), plaintext=plaintext) as ledger:
            return await work(ledger)

    run_async(opened, debug=debug)


def _require_file(url: str | None) -> None:
    from chatledger.errors import StorageError

    path = file_path(url)
    if path is not None and not Path(path).exists():
        raise StorageError(f"there is no database {path}; chatledger import, migrate and demo create one")


def file_path(url: str | None) -> str | None:
    """The path of a SQLite database; None for a database in memory or on a server."""
    from chatledger.storage.drivers.urls import MEMORY, read_url, sqlite_path

    address = read_url(url)
    if address.get_backend_name() != "sqlite":
        return None
    path = sqlite_path(address)
    return None if path == MEMORY else path


def require_files(files: Sequence[str]) -> None:
    """Raises UsageError for a folder or a missing file. `-` is standard input."""
    for file in files:
        if file != "-" and Path(file).is_dir():
            raise UsageError(f"{file} is a folder; give its files")
        if file != "-" and not Path(file).exists():
            raise UsageError(f"there is no file {file}")


def require_folder(output: str | None) -> None:
    """Raises UsageError if `output` is a folder or its folder does not exist. None is standard output."""
    if output is not None and not Path(output).parent.is_dir():
        raise UsageError(f"cannot write {output}: there is no folder {Path(output).parent}")
    if output is not None and Path(output).is_dir():
        raise UsageError(f"cannot write {output}: it is a folder")


def require_one(given: dict[str, bool]) -> None:
    """Raises UsageError unless exactly one of the alternatives is given."""
    if sum(given.values()) != 1:
        raise UsageError(f"give {' or '.join(given)}" + (", not both" if any(given.values()) else ""))
