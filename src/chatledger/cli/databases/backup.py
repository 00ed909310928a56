"""`backup` and `restore`: copy a SQLite database that is in use, and put the copy back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, require_files, require_folder, run
from chatledger.cli.output import print_json
from chatledger.cli.progress import working


def add_to(app: typer.Typer) -> None:
    app.command("backup")(backup)
    app.command("restore")(restore)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create. It must not exist yet.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy a SQLite database to a file, even while it is in use.

    The copy holds one consistent state, and is checked. For PostgreSQL, use pg_dump.

    Example: chatledger backup --url chat.db chat-copy.db
    """

    def work() -> int:
        from chatledger.storage.upgrade import backup as storage

        require_folder(str(file))
        with working("copying", quiet=as_json):
            copied = storage.backup(url, file)
        return _report("backed up to", copied, as_json=as_json)

    run(work, debug=debug)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Backup file to restore.")],
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy a backup to a path where no database exists yet.

    The copy is checked. --url names the new database.

    Example: chatledger restore chat-copy.db --url chat.db
    """

    def work() -> int:
        from chatledger.storage.upgrade import backup as storage

        require_files([str(file)])
        with working("copying", quiet=as_json):
            copied = storage.restore(file, url)
        return _report("restored to", copied, as_json=as_json)

    run(work, debug=debug)


def _report(what: str, path: Path, *, as_json: bool) -> int:
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        say(f"{what} {path} ({path.stat().st_size:,} bytes)")
    return ExitCode.OK
