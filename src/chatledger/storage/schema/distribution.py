"""PostgreSQL whose tables are distributed by tenant over several servers, as the extension Citus does it.

Such a database runs a statement that names its tenant on the one server that has the tenant's rows. It runs a statement
that writes several tables in pieces and commits them in two phases, so a ledger sends it statements that write one.

A revision creates its tables on the coordinator alone. `distribute` makes distributed tables of those, as long as they
are empty: the rows of a large table would be moved while all writers wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from chatledger.errors import StorageError
from chatledger.storage.schema.row_security import MIGRATING
from chatledger.storage.schema.tables import INSERTION_ORDER

SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""Citus refuses to change a view after it changed the shards of a table in parallel. A plain PostgreSQL accepts the
setting too, and does not use it.
"""
_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_TABLES = """
SELECT c.relname, EXISTS (
  SELECT FROM pg_dist_partition d WHERE d.logicalrelid = c.oid AND d.partmethod = 'h'
) AS distributed
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = ANY(:names) AND c.relkind IN ('r', 'p')
"""
_NAMES = [table.name for table in INSERTION_ORDER]
"""Each table after those that it points at, which have to be distributed before it. The first one points at none."""


class LocalRows(StorageError):
    """Tables that are not distributed have rows. `statements` distribute all that are not."""

    def __init__(self, tables: Sequence[str], statements: Sequence[str]) -> None:
        self.because = (
            f"not distributed, because these tables have rows: {', '.join(tables)}. Nothing was changed. Stop all "
            "writers, then run these statements"
        )
        self.statements = statements
        super().__init__(f"{self.because}: {' '.join(statements)}")


def has_citus(connection: Connection) -> bool:
    """Whether this PostgreSQL database has the extension Citus."""
    return bool(connection.exec_driver_sql(_HAS_CITUS).scalar())


def local_tables(connection: Connection, schema: str) -> Sequence[str]:
    """The tables of ours that Citus does not distribute, in the order in which it can. None without Citus."""
    return [name for name, distributed in _tables(connection, schema).items() if not distributed]


def require_empty(connection: Connection, schema: str) -> None:
    """Raises StorageError without Citus, and LocalRows if a table that is not distributed has rows."""
    if not has_citus(connection):
        raise StorageError("this database does not have the extension Citus, so its tables cannot be distributed")
    connection.exec_driver_sql(f"SET LOCAL {MIGRATING} = 'on'")  # row-level security would hide the rows
    local = local_tables(connection, schema)
    filled = [name for name in local if _has_rows(connection, _name(schema, name))]
    if filled:
        raise LocalRows(filled, [_distribute(schema, name) for name in local])


def distribute(connection: Connection, schema: str) -> None:
    """Distribute the tables that are not, each in a transaction of its own if the connection is in autocommit."""
    for name in local_tables(connection, schema):
        connection.exec_driver_sql(_distribute(schema, name))


def is_worker(connection: Connection, schema: str) -> bool:
    """Whether a server without the table of the revision has distributed tables of ours: a worker of Citus."""
    return any(_tables(connection, schema).values())


def only_servers_distribute() -> StorageError:
    return StorageError("distributed=True needs PostgreSQL; a SQLite file is in one place")


def _tables(connection: Connection, schema: str) -> dict[str, bool]:
    """Whether each table of ours is distributed. None without Citus."""
    if not has_citus(connection):
        return {}
    rows = connection.execute(text(_TABLES), {"schema": schema, "names": _NAMES}).all()
    is_distributed = {row.relname: bool(row.distributed) for row in rows}
    return {name: is_distributed[name] for name in _NAMES if name in is_distributed}


def _has_rows(connection: Connection, table: str) -> bool:
    return bool(connection.exec_driver_sql(f"SELECT EXISTS (SELECT FROM {table})").scalar())


def _distribute(schema: str, table: str) -> str:
    beside = "" if table == _NAMES[0] else f", colocate_with => '{_name(schema, _NAMES[0])}'"
    return f"SELECT create_distributed_table('{_name(schema, table)}', 'tenant_id'{beside});"


def _name(schema: str, table: str) -> str:
    return f'"{schema}"."{table}"'
