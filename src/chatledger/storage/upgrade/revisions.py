"""Runs the revisions between two schemas with Alembic, in the connection and the transaction of the caller."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from alembic import command, context
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect

from chatledger.errors import InvalidArgument, StorageError
from chatledger.storage.schema import row_security
from chatledger.storage.schema.copy_triggers import MARKER, REFUSAL
from chatledger.storage.schema.tables import SCHEMA, metadata
from chatledger.storage.schema.views import VIEWS
from chatledger.storage.upgrade.discard import Allowed, require_nothing_lost
from chatledger.storage.upgrade.users_views import require_no_readers
from chatledger.storage.upgrade.versions import (
    VERSION_TABLE,
    SchemaStatus,
    read_status,
    require_usable,
)

_log = logging.getLogger("chatledger.migrations")
LOCK_TIMEOUT = 3.0
"""Seconds that a revision on PostgreSQL waits for a lock."""


def require_revision(to: str) -> None:
    """Raises InvalidArgument for an unknown revision."""
    known = sorted(path.name.partition("_")[0] for path in (scripts_folder() / "versions").glob("[0-9]*.py"))
    if to not in ("head", "base", *known):
        raise InvalidArgument("to", f"must be head, base or one of {', '.join(known)}, not {to!r}")


def scripts_folder() -> Path:
    """The folder of the revisions: in the installed package, or at the root of a checkout."""
    package = Path(__file__).parents[2]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parents[1] / "migrations"


def alembic_config(schema: str | None, connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes |= {"schema": schema, "connection": connection, "lock_timeout": LOCK_TIMEOUT}
    config.attributes["on_version_apply"] = _keep_row_security
    return config


def _keep_row_security(ctx: MigrationContext, **_: Any) -> None:
    if ctx.connection is not None:
        row_security.keep(ctx.connection, ctx.version_table_schema)


def require_safe(connection: Connection, schema: str | None, to: str, allowed: Allowed) -> SchemaStatus:
    """The status before anything is changed. Raises StorageError if the migration would lose what it may not, or fail
    because of a user's view. Alembic refuses a database that is newer than this release.
    """
    status = read_status(connection, schema)
    if status.found is None or status.steps is None or status.steps > 0:
        return status
    if not is_done(status, to) and inspect(connection).has_table(MARKER, schema=schema):
        raise StorageError(REFUSAL)  # a revision makes tables anew, without the triggers
    if schema is not None:
        require_no_readers(connection, schema, status.found, status.expected if to == "head" else to)
    if _is_down(status, to):
        require_nothing_lost(connection, schema, status.found, to, allowed)
    return status


def run(connection: Connection, schema: str | None, to: str) -> SchemaStatus:
    """Run the migrations. The caller commits the last transaction."""
    status = read_status(connection, schema)
    if is_done(status, to):
        return status
    config = alembic_config(schema, connection)
    _log.info("migrating from revision %s to %s", status.found, to)
    (command.downgrade if _is_down(status, to) else command.upgrade)(config, to)
    done = read_status(connection, schema)
    _log.info("migrated to revision %s", done.found)
    return done


def is_done(status: SchemaStatus, to: str) -> bool:
    """Whether the database is at revision `to`. Raises SchemaMismatch for `head` if it is too new for this release."""
    if to != "head":
        return status.found == to
    if status.found is not None and not status.older:
        require_usable(status, "")
    return status.usable


def _is_down(status: SchemaStatus, to: str) -> bool:
    return to == "base" or (to.isdecimal() and status.found is not None and to < status.found)


def alembic_include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """A filter for an application's own Alembic: it leaves out chatledger's schema and tables. Pass it to Alembic in
    the `env.py` of the application.

        context.configure(connection=connection, include_name=alembic_include_name, target_metadata=metadata)

    On PostgreSQL chatledger has a schema of its own, so a table `messages` elsewhere is the application's. A SQLite
    file has no schemas; there the filter leaves out the tables by name.
    """
    if type_ == "schema":
        return name != SCHEMA
    if type_ != "table":
        return True
    schema = parent_names.get("schema_name")
    return not (schema == SCHEMA or (schema is None and name in _OURS and _ours_by_default()))


def _ours_by_default() -> bool:
    """Whether a name without a schema can be chatledger's in the current Alembic environment. The call itself does not
    tell.

    On PostgreSQL it can for a role that has the same name as chatledger's schema: `search_path` begins with "$user".
    """
    dialect = context.get_context().dialect
    return dialect.name == "sqlite" or dialect.default_schema_name == SCHEMA


_OURS = {table.name for table in metadata.tables.values()} | set(VIEWS) | {VERSION_TABLE}
