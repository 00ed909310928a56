"""What stands in for Citus: its row in pg_extension, its list of distributed tables, its function that distributes one.

The function records its calls. As Citus does, it refuses a table that points at one that is not distributed, and one
beside a table that is not.
"""

from __future__ import annotations

import asyncio

import asyncpg

from tests.conftest import Database
from tests.storage.raw import query

EXTENSION = (
    "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)"
    " SELECT 4242, 'citus', 10, oid, false, '13.2-1' FROM pg_namespace WHERE nspname = 'pg_catalog'"
)
_STAND_IN = f"""
{EXTENSION};
CREATE TABLE public.pg_dist_partition (logicalrelid regclass, partmethod "char", call int GENERATED ALWAYS AS IDENTITY);
CREATE FUNCTION public.create_distributed_table(
  table_name regclass, distribution_column text, distribution_type text DEFAULT 'hash', colocate_with text DEFAULT ''
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM pg_constraint c WHERE c.conrelid = table_name AND c.contype = 'f' AND c.confrelid <> table_name
      AND NOT EXISTS (SELECT FROM public.pg_dist_partition d WHERE d.logicalrelid = c.confrelid)
  ) OR (colocate_with <> '' AND NOT EXISTS (
    SELECT FROM public.pg_dist_partition d WHERE d.logicalrelid = colocate_with::regclass
  )) THEN
    RAISE EXCEPTION 'a table that % needs is not distributed', table_name;
  END IF;
  INSERT INTO public.pg_dist_partition VALUES (table_name, 'h');
END $$
"""


def install(database: Database) -> None:
    execute(database, _STAND_IN)


def execute(database: Database, script: str) -> None:
    """Several statements at once, with semicolons inside of functions too."""
    asyncio.run(_execute(database.url, script))


async def _execute(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(script)
    await connection.close()


def distributed(database: Database) -> list[str]:
    """The tables of the calls of the function, in order."""
    calls = "SELECT c.relname FROM public.pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid ORDER BY d.call"
    return [name for (name,) in asyncio.run(query(database, calls))]
