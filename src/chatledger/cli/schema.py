"""`migrate` and `schema`, the two commands that a plain install answers. Both doors, with and without the extra, lead
here.
"""

from __future__ import annotations

import json
import shlex
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from chatledger.cli.outcome import ExitCode, UsageError

if TYPE_CHECKING:
    from chatledger.storage.upgrade.versions import SchemaStatus


def migrate(
    url: str | None,
    *,
    to: str,
    sql: bool,
    yes: bool,
    as_json: bool,
    rls: bool | None = None,
    sign: AbstractContextManager[None] = nullcontext(),  # noqa: B008 - it holds nothing
) -> int:
    """Bring the database to a revision, or print the statements that would. `sign` is shown while it works."""
    import chatledger

    if to not in ("head", "base") and not to.isdigit():
        raise UsageError(f"--to takes a revision such as 0001, head or base, not {to!r}")
    if to == "base" and not (sql or yes):
        raise UsageError("--to base drops every table with all that is in it, for every tenant; say --yes to do it")
    if rls is not None and (sql or to == "base"):
        raise UsageError("--rls and --no-rls ask the database for its tables: not with --sql, nor with --to base")
    if sql:
        print(chatledger.offline_sql(url, to=to), end="")
        return ExitCode.OK
    with sign:
        status = chatledger.migrate(url, to=to, rls=rls)
    if as_json:
        print(_as_json(status))
    else:
        print(f"{_name(url)} is at schema {status.found or 'none'}{_security(status.rls)}")
    return ExitCode.OK


def schema(url: str | None, *, as_json: bool) -> int:
    """Print the revision that is there and the one that is needed; FOUND if this release cannot use the database."""
    import chatledger

    status = chatledger.schema_status(url)
    if as_json:
        print(_as_json(status))
    else:
        found = f"found {status.found or 'none'}, expected {status.expected}"
        print(f"{_name(url)}: {found}{_security(status.rls)}", end="")
        print("" if status.usable else f"; run: chatledger migrate --url {shlex.quote(_name(url))}")
    return ExitCode.OK if status.usable else ExitCode.FOUND


def _as_json(status: SchemaStatus) -> str:
    told = {"found": status.found, "expected": status.expected, "usable": status.usable, "rls": status.rls}
    return json.dumps(told)


def _security(rls: bool) -> str:
    return ", with row-level security" if rls else ""


def _name(url: str | None) -> str:
    from chatledger.storage.drivers.urls import read_url, sqlite_path, without_password

    address = read_url(url)
    return sqlite_path(address) if address.get_backend_name() == "sqlite" else without_password(address)
