"""PostgreSQL databases that a test leaves to the next one.

A copy of a template costs the server some 900 files; deleting the rows of a test touches a few pages. So a test's rows
are deleted, and its copy is used again if nothing else of it changed: the schema, grants, settings and statistics are
those of the template, and no table is large. Otherwise the copy is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg

from tests.postgres import Server

_OURS = "SELECT oid FROM pg_class WHERE relnamespace = 'chatledger'::regnamespace AND relname <> 'chatledger_version'"

_TABLES = f"{_OURS} AND relkind IN ('r', 'p') AND NOT relispartition"

# A statement that changes a schema writes or deletes a row in one of these. What initdb made has lower oids.
_CATALOGS = {
    "pg_attribute": "attrelid",
    "pg_class": "oid",
    "pg_constraint": "oid",
    "pg_default_acl": "oid",
    "pg_depend": "objid",
    "pg_index": "indrelid",
    "pg_namespace": "oid",
    "pg_policy": "oid",
    "pg_proc": "oid",
    "pg_statistic": "starelid",
    "pg_trigger": "oid",
}

# PostgreSQL plans a table of a few pages like an empty one, as long as it was neither vacuumed nor analyzed.
_STATE = f"""
SELECT 'revision', count(*), max(xmin::text::bigint) FROM chatledger.chatledger_version
UNION ALL SELECT 'grants and settings', count(datacl) + count(setconfig), 0
  FROM pg_database d LEFT JOIN pg_db_role_setting ON setdatabase = d.oid WHERE datname = current_database()
UNION ALL SELECT 'extensions', count(*), 0 FROM pg_extension
UNION ALL SELECT 'vacuumed', sum(relpages), sum(reltuples)::bigint FROM pg_class WHERE oid IN ({_TABLES})
UNION ALL SELECT 'large', count(*), 0 FROM pg_class WHERE oid IN ({_OURS}) AND pg_relation_size(oid) > 8 * 8192
""" + "".join(
    f"UNION ALL SELECT '{catalog}', count(*), max(xmin::text::bigint) FROM {catalog} WHERE {oid} >= 16384\n"
    for catalog, oid in _CATALOGS.items()
)

_END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Copies:
    """Databases with the tables of a template and no rows, on one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._idle: dict[str, list[tuple[str, contextlib.ExitStack]]] = {}
        self._states: dict[str, Any] = {}

    @contextlib.contextmanager
    def copy(self, template: str) -> Iterator[str]:
        """The URL of a copy of the database at the URL `template`, whose tables are empty."""
        idle = self._idle.setdefault(template, [])
        url, dropped = idle.pop() if idle else self._new(template)
        try:
            yield url
        finally:
            with dropped:
                if asyncio.run(_emptied(url)) == self._states[template]:
                    idle.append((url, dropped.pop_all()))

    def close(self) -> None:
        """Drop the copies that are not in use."""
        for _, dropped in (copy for copies in self._idle.values() for copy in copies):
            dropped.close()

    def _new(self, template: str) -> tuple[str, contextlib.ExitStack]:
        with contextlib.ExitStack() as dropped:
            url = dropped.enter_context(self._server.database(template=template))
            if template not in self._states:
                self._states[template] = asyncio.run(_emptied(url))
            return url, dropped.pop_all()


async def _emptied(url: str) -> Any:
    """Deletes all rows of ours. Returns what must be the same in each copy, or None if the rows cannot be deleted."""
    with contextlib.suppress(asyncpg.PostgresError, OSError, TimeoutError):
        async with asyncio.timeout(10), _connection(url) as connection:
            while await connection.fetchval(_END_OTHERS):  # noqa: ASYNC110  # a process of the server, not a task
                await asyncio.sleep(0.002)
            tables = [row[0] for row in await connection.fetch(f"SELECT t.oid::regclass::text FROM ({_TABLES}) t")]
            deletes = "; ".join(f"DELETE FROM {table}" for table in tables)
            await connection.execute(f"SET session_replication_role = replica; {deletes}")
            return await connection.fetch(_STATE)
    return None


@contextlib.asynccontextmanager
async def _connection(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
