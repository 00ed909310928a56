"""PostgreSQL whose tables are distributed by tenant over several servers, as the extension Citus does it.

Such a database runs a statement that names its tenant on the one server that has the tenant's rows. It runs a statement
that writes several tables in pieces and commits them in two phases, so a ledger sends it statements that write one.
"""

from __future__ import annotations

from sqlalchemy import Connection

from chatledger.errors import StorageError

_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"


def has_citus(connection: Connection) -> bool:
    """Whether this PostgreSQL database has the extension Citus."""
    return bool(connection.exec_driver_sql(_HAS_CITUS).scalar())


def only_servers_distribute() -> StorageError:
    return StorageError("distributed=True needs PostgreSQL; a SQLite file is in one place")
