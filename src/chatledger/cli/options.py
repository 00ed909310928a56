"""The options that commands share, and the functions that run a command with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from chatledger.cli.exit_codes import UsageError, finish

if TYPE_CHECKING:
    from chatledger.errors import ChatLedgerError
    from chatledger.ledger import Ledger, Opening
    from chatledger.storage.rows.keys import Encryption

T = TypeVar("T")


def _database(url: str | None) -> str | None:
    """Raises BadParameter for the address of a server of chatledger."""
    if url is not None and url.lower().startswith(("http://", "https://")):
        raise typer.BadParameter(
            "it is the database, not the server: give a file path, sqlite:///PATH or postgresql://…"
        )
    return url


def url_option(default: str) -> Any:
    return typer.Option(
        "--url",
        metavar="URL",
        envvar="CHATLEDGER_URL",
        callback=_database,
        help="The database: a file path, sqlite:///PATH or postgresql://….",
        show_default=default,
    )


Url = Annotated[str | None, url_option("chatledger.db")]
Tenant = Annotated[str, typer.Option("--tenant", metavar="TENANT", help="The tenant that owns the conversations.")]


def _time(text: str) -> datetime:
    """A time, in UTC unless it names its zone. A day is its first moment. Raises BadParameter."""
    try:
        read = datetime.fromisoformat(text)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        problem = f"{text!r} is no time: give one such as 2026-01-31 or 2026-01-31T09:00:00Z"
        raise typer.BadParameter(problem) from None


def time_option(name: str, meaning: str) -> Any:
    """--since or --until, which read a time in the same way in every command."""
    return typer.Option(
        name, metavar="TIME", parser=_time, help=f"{meaning} A day or a time; without a zone it is UTC."
    )


THREAD_HELP = "The thread's id, or a unique prefix of it."
OnlyThread = Annotated[
    str | None,
    typer.Option("--thread", metavar="THREAD", help="Only of this thread: its id, or a unique prefix of it."),
]
Latest = Annotated[bool, typer.Option("--latest", help="Use the thread with the most recent activity.")]
Branch = Annotated[
    int | None,
    typer.Option("--branch", metavar="N", help="Number of the branch.", show_default="the active branch"),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default="standard output"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print a traceback if the command fails.")]

Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Maximum number of items to list.")]
Cursor = Annotated[
    str | None,
    typer.Option("--cursor", metavar="CURSOR", help="Continue after the page that ended with this cursor."),
]

KEY_FILE: ContextVar[str | None] = ContextVar("chatledger_keys", default=None)
"""FILE of `chatledger --keys FILE COMMAND …`: an option of the program, since it means the same to every command."""


def run(command: Callable[[], int], *, debug: bool) -> None:
    """Run a command and exit with its code."""
    raise typer.Exit(finish(command, debug=debug))


def run_async(command: Callable[[], Coroutine[Any, Any, int]], *, debug: bool) -> None:
    run(lambda: asyncio.run(command()), debug=debug)


def given_keys(*, plaintext: bool = False) -> Encryption | None:
    """Read the file named by --keys or CHATLEDGER_KEYS. Returns None if neither is given. Raises UsageError if there is
    plaintext to read and no file.
    """
    if (file := KEY_FILE.get()) is None:
        if plaintext:
            raise UsageError("--plaintext needs keys; give `chatledger --keys FILE …`")
        return None
    from chatledger.storage.rows.keys import Encryption, read_keys

    require_files([file])
    return Encryption(read_keys(file), plaintext=plaintext)


def with_ledger(
    url: str | None,
    tenant: str,
    work: Callable[[Ledger], Awaitable[int]],
    *,
    debug: bool,
    plaintext: bool = False,
    keyless: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` on an existing ledger and exit with the code that it returns. `check` validates the arguments before
    the ledger is opened. `keyless` as in `in_ledger`.
    """

    def checked() -> int:
        check()
        return in_ledger(url, tenant, work, plaintext=plaintext, keyless=keyless)

    run(checked, debug=debug)


def in_ledger(
    url: str | None,
    tenant: str,
    work: Callable[[Ledger], Awaitable[T]],
    *,
    plaintext: bool = False,
    keyless: bool = False,
) -> T:
    """Run `work` on an existing ledger, and return what it returns.

    A missing database file is an error: a typo in its name must not create a new, empty ledger. Raises EncryptionError
    if the database is recorded as encrypted and no keys are given, unless the work is `keyless`: it neither stores nor
    shows content.
    """

    from chatledger.errors import ThreadNotFound

    async def opened() -> T:
        require_database(url)
        async with open_ledger(url, tenant, plaintext=plaintext) as ledger:
            if not keyless:
                await require_keys(ledger)
            with naming_database(url, ThreadNotFound):
                return await work(ledger)

    return asyncio.run(opened())


@contextmanager
def naming_database(url: str | None, kind: type[ChatLedgerError]) -> Iterator[None]:
    """Add the database to an error of the kind, for a user who may have meant another one."""
    try:
        yield
    except kind as error:
        if (place := place_of(url)) not in str(error):
            error.add_note(f"the database is {place}")
        raise


def place_of(url: str | None) -> str:
    """The path or URL of the database, without its password."""
    from chatledger.storage.drivers.urls import read_url, sqlite_path, without_password

    address = read_url(url)
    return sqlite_path(address) if address.get_backend_name() == "sqlite" else without_password(address)


async def require_keys(ledger: Ledger) -> None:
    """Raises EncryptionError if the database is recorded as encrypted and no keys are given."""
    from chatledger.repositories import scope_of

    await scope_of(ledger).require_keys()


def seen_by(ledger: Ledger, user: str | None) -> Ledger:
    """The ledger as the user of the option --user sees it; without the option, as it is."""
    return ledger if user is None else ledger.user(user)


def open_ledger(url: str | None, tenant: str, *, plaintext: bool = False, create: bool = False) -> Opening:
    """Open a ledger. With `create`, a missing SQLite file is created. An older schema stays as it is, and the error
    names the command that migrates it: no command changes a schema unless its user asks for that.
    """
    from chatledger import Ledger

    migrate = None if create and not _is_file(url) else False
    return Ledger.open(url, tenant=tenant, encryption=given_keys(plaintext=plaintext), migrate=migrate)


def _is_file(url: str | None) -> bool:
    """Whether the URL is that of a SQLite file with anything in it."""
    path = file_path(url)
    return path is not None and Path(path).is_file() and Path(path).stat().st_size > 0


def require_database(url: str | None) -> None:
    from chatledger.errors import StorageError

    path = file_path(url)
    if path is not None and not Path(path).exists():
        raise StorageError(f"there is no database {path}; check --url, or create one with chatledger import or migrate")


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
            raise UsageError(f"{file} is a folder; give a file in it")
        if file != "-" and not Path(file).exists():
            raise UsageError(f"there is no file {file}")


def require_folder(output: str | None) -> None:
    """Raises UsageError if `output` is a folder or its parent folder does not exist. None is standard output."""
    if output is not None and not Path(output).parent.is_dir():
        raise UsageError(f"cannot write {output}: there is no folder {Path(output).parent}")
    if output is not None and Path(output).is_dir():
        raise UsageError(f"cannot write {output}: it is a folder")


def require_one(alternatives: dict[str, bool]) -> None:
    """Raises UsageError unless exactly one of the alternatives is given."""
    if sum(alternatives.values()) != 1:
        raise UsageError(f"give {' or '.join(alternatives)}" + (", not both" if any(alternatives.values()) else ""))
