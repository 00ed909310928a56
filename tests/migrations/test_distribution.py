"""Tables that a revision adds are distributed on demand, and never without a word left on the coordinator."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from chatledger.admin import migrate, schema_status
from chatledger.errors import SchemaMismatch
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.migrations.citus import distributed, execute, install
from tests.storage.raw import query

TABLES = [table.name for table in INSERTION_ORDER]
ADDED = ["run_leases", "run_decisions", "revisions", "kv", "tenants"]
"""The tables that later revisions than 0004 add."""
KEPT = [name for name in TABLES if name not in ADDED]


@pytest.fixture
def citus(pg_url: str) -> Database:
    database = Database("postgresql", pg_url)
    install(database)
    return database


def test_migrate_distributes_each_table_after_those_that_it_points_at(citus: Database) -> None:
    status = migrate(citus.url)
    assert list(status.local_tables) == list(schema_status(citus.url).local_tables) == TABLES
    assert distributed(citus) == []
    for _ in range(2):  # the second call has nothing to do
        assert migrate(citus.url, distributed=True).local_tables == ()
        assert distributed(citus) == TABLES
    assert schema_status(citus.url).local_tables == ()


def test_the_tables_that_a_revision_adds_are_listed_and_distributed(citus: Database) -> None:
    migrate(citus.url, to="0004", distributed=True)
    assert distributed(citus) == KEPT
    outcome = chatledger("migrate", url=citus.url)
    assert f"not distributed: {', '.join(ADDED)}; run: chatledger migrate --distributed" in outcome.out
    assert f"not distributed: {', '.join(ADDED)};" in chatledger("schema", url=citus.url).out
    assert chatledger("schema", "--json", url=citus.url).json["local_tables"] == ADDED
    outcome = chatledger("migrate", "--distributed", url=citus.url)
    assert (outcome.code, "not distributed" in outcome.out) == (0, False)
    assert distributed(citus) == [*KEPT, *ADDED]
    assert "not distributed" not in chatledger("schema", url=citus.url).out


@pytest.mark.parametrize("rls", [False, True])
def test_a_table_with_rows_is_not_distributed_and_nothing_is_changed(citus: Database, rls: bool) -> None:
    migrate(citus.url, to="0004", rls=rls)
    execute(citus, "INSERT INTO chatledger.erasures VALUES ('acme', 'e', 'thread', 't', 1, 0, now())")
    outcome = chatledger("migrate", "--distributed", url=citus.url)
    assert (outcome.code, "have rows: erasures" in outcome.error) == (1, True)
    assert (distributed(citus), schema_status(citus.url).found) == ([], "0004")
    assert (
        chatledger("migrate", "--distributed", "--json", url=citus.url).json["statements"] == outcome.out.splitlines()
    )
    with pytest.raises(StorageError, match="have rows: erasures"):
        migrate(citus.url, distributed=True)
    execute(citus, outcome.out)
    assert distributed(citus) == KEPT
    assert migrate(citus.url, distributed=True).found == schema_status(citus.url).expected
    assert distributed(citus) == [*KEPT, *ADDED]


def test_only_citus_distributes(pg_url: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not have the extension Citus"):
        migrate(pg_url, distributed=True)
    assert schema_status(pg_url).found is None
    assert "PostgreSQL" in chatledger("migrate", "--distributed", url=str(tmp_path / "l.db")).error
    assert chatledger("migrate", "--distributed", "--sql", url=pg_url).code == 2
    assert chatledger("migrate", "--distributed", "--to", "base", "--yes", url=pg_url).code == 2
    migrate(pg_url)
    assert schema_status(pg_url).local_tables == ()


def test_opening_at_a_worker_says_what_to_do(citus: Database) -> None:
    """A worker has the distributed tables, and no table that stayed on the coordinator."""
    migrate(citus.url, distributed=True)
    execute(citus, "ALTER TABLE chatledger.chatledger_version RENAME TO elsewhere")

    async def opened() -> None:
        async with Ledger.open(citus.url):
            pass

    with pytest.raises(SchemaMismatch, match="worker of Citus") as caught:
        asyncio.run(opened())
    assert caught.value.command == "SELECT create_reference_table('chatledger.chatledger_version')"
    assert caught.value.command in str(caught.value)
    execute(citus, "ALTER TABLE chatledger.elsewhere RENAME TO chatledger_version")
    asyncio.run(opened())


# --- Views and tables in one transaction ------------------------------------------------------------------------------

NOTING = """
CREATE TABLE public.noted (tag text, mode text, lock_timeout text);
CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.noted
  VALUES (TG_TAG, current_setting('citus.multi_shard_modify_mode', true), current_setting('lock_timeout'));
END $$;
CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION public.note();
CREATE EVENT TRIGGER note_drops ON sql_drop EXECUTE FUNCTION public.note();
"""


def test_each_revision_changes_shards_one_after_the_other(citus: Database) -> None:
    """Otherwise Citus refuses the change of a view after that of a table. A statement outside of a transaction, such as
    CREATE INDEX CONCURRENTLY, has no limit for locks either.
    """
    execute(citus, NOTING)
    migrate(citus.url)
    migrate(citus.url, to="0004")
    migrate(citus.url, rls=True)
    in_transactions = "SELECT tag, mode FROM public.noted WHERE lock_timeout <> '0'"
    noted = set(asyncio.run(query(citus, in_transactions)))
    assert {mode for _, mode in noted} == {"sequential"}
    assert {tag for tag, _ in noted} >= {"CREATE TABLE", "ALTER TABLE", "DROP VIEW", "CREATE VIEW", "ALTER VIEW"}
