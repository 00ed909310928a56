"""Backs up a SQLite file while others write to it, with SQLite's own backup, and restores a copy.

The backup copies a few pages at a time, in a read transaction, so writers go on. For PostgreSQL there is pg_dump; the
error names the command.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL

from chatledger.arguments import FUNCTION_OR_NONE, PATH, require
from chatledger.errors import StorageError
from chatledger.models import Progress
from chatledger.models.secrets import is_secret_name
from chatledger.storage.drivers.new_file import new_file, stands_there
from chatledger.storage.drivers.sqlite import file_uri
from chatledger.storage.drivers.urls import (
    ADDRESS,
    BUSY_TIMEOUT,
    MEMORY,
    Address,
    read_url,
    sqlite_path,
)
from chatledger.storage.upgrade.files import file_error, inspect_file, require_folder
from chatledger.storage.upgrade.intruders import refuse_intruders
from chatledger.storage.upgrade.versions import require_usable

PAGES = 256
"""Pages in one step of the copy: 2 MiB at 8 KiB a page."""


def backup(url: Address, target: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
    """Copy one consistent state of a SQLite database to a new file, check the copy, and return its path. Other
    processes may write meanwhile. Only its owner can read the file. Blocking: in a running event loop, call it in a
    thread.

        await asyncio.to_thread(chatledger.admin.backup, "service.db", "backups/2026-05-01.db")

    `url` is that of `Ledger.open`. `progress` receives the number of pages copied and the number of all pages. The copy
    has as many bytes as the database, and the check reads it once more.

    Raises StorageError if the target exists, the copy fails or is damaged, and then leaves no file behind; and
    SchemaMismatch. For PostgreSQL the StorageError names the command to run.
    """
    return _backup(url, target, progress)


def _backup(url: Address, target: str | os.PathLike[str], progress: Progress | None, *, moves: bool = False) -> Path:
    require(ADDRESS, url=url)
    require(PATH, target=target)
    require(FUNCTION_OR_NONE, progress=progress)
    address, target = read_url(url), Path(target)
    source = _path_of(address, f"pg_dump --format=custom --schema=chatledger --file={shlex.quote(str(target))}")
    if not Path(source).exists():
        raise StorageError(f"there is no file {source}")
    require_usable(inspect_file(source).status, f"chatledger migrate --url {shlex.quote(source)}")
    _require_free(target, "a backup does not overwrite")
    require_folder(target)
    try:
        with new_file(target) as unfinished:
            _copy(source, unfinished, progress)
            if moves:
                _move_answers(unfinished)
            _require_whole(unfinished)
            _require_free(target, "a backup does not overwrite")
    except FileExistsError:
        raise StorageError(f"{target} exists already; a backup does not overwrite") from None
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise file_error(source, f"cannot copy {source} to {target}", error) from error
    return target


def restore(source: str | os.PathLike[str], url: Address, *, progress: Progress | None = None) -> Path:
    """Copy a backup to a path where no database exists, and check the copy as `backup` does. Returns the path.
    Blocking, and with the errors of `backup`.

    Answers that were open in the backup do not go on: who serves the database next ends them as cancelled, "moved".
    """
    require(PATH, source=source)
    require(ADDRESS, url=url)
    require(FUNCTION_OR_NONE, progress=progress)
    address = read_url(url)
    target = Path(_path_of(address, f"pg_restore --exit-on-error {shlex.quote(str(source))} --dbname"))
    _require_free(target, "move it away to restore over it")
    if os.path.exists(source):
        refuse_intruders(inspect_file(os.fspath(source)).intruders, os.fspath(source), address)
    return _backup(source, target, progress, moves=True)


def _require_free(target: Path, advice: str) -> None:
    taken = stands_there(target)
    if taken is not None:
        raise StorageError(f"{taken} exists already; {advice}")


def _path_of(address: URL, command: str) -> str:
    """The path of a SQLite file. Raises StorageError for PostgreSQL, with the command that takes the URL as its last
    argument, as a shell takes it.
    """
    if address.get_backend_name() != "sqlite":
        raise StorageError(
            f"a PostgreSQL database is backed up by its own tools: {command} {shlex.quote(_libpq_url(address))}"
        )
    path = sqlite_path(address)
    if path == MEMORY:
        raise StorageError("a database in memory has no file")
    return path


_LIBPQ = re.compile("host|port|dbname|service|passfile|connect_timeout|application_name|options|krbsrvname|(ssl|gss).+")
"""Parameters of a URL that PostgreSQL's own tools know. They refuse those of asyncpg."""


def _libpq_url(address: URL) -> str:
    """The URL for PostgreSQL's own tools, without passwords: they ask for one, or take PGPASSWORD or ~/.pgpass."""
    own = {name: value for name, value in address.query.items() if _LIBPQ.fullmatch(name) and not is_secret_name(name)}
    url = URL.create("postgresql", address.username, None, address.host, address.port, address.database, own)
    return url.render_as_string()


def _copy(source: str, target: Path, progress: Progress | None) -> None:
    def step(_status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with (
        closing(sqlite3.connect(file_uri(source, "rw"), uri=True, timeout=BUSY_TIMEOUT)) as original,
        closing(sqlite3.connect(target)) as other,
    ):
        original.execute(
            "BEGIN"
        )  # a read transaction: without it the copy would start over after each commit of others
        original.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        original.backup(other, pages=PAGES, progress=step)
        other.execute("PRAGMA journal_mode = WAL")


def _move_answers(path: Path) -> None:
    """The open answers are those of another database from now on, which may go on with them itself."""
    with closing(sqlite3.connect(path)) as connection:
        if any(row[1] == "database_id" for row in connection.execute("PRAGMA table_info(run_leases)")):
            connection.execute("UPDATE run_leases SET database_id = ''")
            connection.commit()


def _require_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        problems = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        problems += [f"{row[0]} row {row[1]} has no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")]
    if problems != ["ok"]:
        raise StorageError(f"the copy is damaged, as its source may be: {problems[-1]}")
