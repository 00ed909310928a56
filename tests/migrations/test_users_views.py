"""A user's own view on our tables and views, on PostgreSQL: it is named before a migration changes anything."""

from __future__ import annotations

import pytest

from chatledger import StorageError
from chatledger.admin import migrate, schema_status
from chatledger.storage.upgrade.users_views import MADE_ANEW
from tests.conftest import Database
from tests.migrations.access import connected, fetch, run_script
from tests.migrations.catalog import read_catalog
from tests.migrations.partitions import create_partitioned_schema
from tests.migrations.released.kept import released, restore
from tests.migrations.revisions import HEAD

UNAFFECTED = "CREATE VIEW public.titles AS SELECT title FROM chatledger.threads;\n"
ON_OLD_VIEWS = """
CREATE SCHEMA reports;
CREATE VIEW reports."By day" AS SELECT thread_id, score FROM chatledger.scores;
CREATE MATERIALIZED VIEW public.days AS SELECT score FROM reports."By day";
CREATE VIEW chatledger.words AS SELECT text FROM chatledger.transcript;
"""
DROPS = """
DROP MATERIALIZED VIEW public.days;
DROP VIEW reports."By day";
DROP VIEW chatledger.words;
"""
ON_NEW = """
CREATE VIEW public.answers AS SELECT result FROM chatledger.calls;
CREATE VIEW public.plans AS SELECT value FROM chatledger.kv;
CREATE VIEW public.archived AS SELECT thread_id, archived_at FROM chatledger.threads;
"""


def refusal(database: Database, to: str = "head", schema: str = "chatledger") -> str:
    """The error of a migration that changes nothing."""
    found, before = schema_status(database.url, schema=schema), read_catalog(database)
    with pytest.raises(StorageError) as caught:
        migrate(database.url, to=to, schema=schema)
    assert not caught.value.retryable
    assert (schema_status(database.url, schema=schema), read_catalog(database)) == (found, before)
    return str(caught.value)


def at_revision(database: Database, revision: str) -> None:
    restore(database, revision)


@pytest.mark.parametrize("older", ["0003", "0004"])  # from 0003 two revisions run, each a transaction of its own
def test_the_way_up_names_the_views_that_read_what_is_replaced(empty_postgresql: Database, older: str) -> None:
    at_revision(empty_postgresql, older)
    run_script(empty_postgresql, ON_OLD_VIEWS + UNAFFECTED)
    error = refusal(empty_postgresql)
    assert 'what these views read: chatledger.words, public.days, reports."By day"; drop and create them again' in error
    run_script(empty_postgresql, DROPS)
    assert migrate(empty_postgresql.url).found == HEAD
    run_script(empty_postgresql, ON_OLD_VIEWS.replace("CREATE SCHEMA reports;\n", ""))
    assert fetch(empty_postgresql, "SELECT count(*) > 0 FROM public.titles") == [(True,)]


def test_a_revision_that_replaces_no_view_is_not_hindered(empty_postgresql: Database) -> None:
    at_revision(empty_postgresql, "0003")
    run_script(empty_postgresql, ON_OLD_VIEWS)
    assert migrate(empty_postgresql.url, to="0004").found == "0004"


def test_the_way_down_names_the_views_that_read_what_is_dropped(pg_database: Database) -> None:
    run_script(pg_database, ON_OLD_VIEWS + ON_NEW + UNAFFECTED)
    error = refusal(pg_database, to="0004")
    names = 'chatledger.words, public.answers, public.archived, public.days, public.plans, reports."By day"'
    assert f"what these views read: {names}; drop and create them again" in error
    run_script(pg_database, DROPS + ON_NEW.replace("CREATE", "DROP").replace(" AS", "; -- "))
    assert migrate(pg_database.url, to="0004").found == "0004"


def test_the_way_to_base_names_every_view(pg_database: Database) -> None:
    run_script(pg_database, UNAFFECTED)
    assert "public.titles" in refusal(pg_database, to="base")


def test_views_on_a_partitioned_table_and_on_a_partition_are_named(empty_postgresql: Database) -> None:
    connected(empty_postgresql, lambda connection: create_partitioned_schema(connection, partitions=4))
    run_script(empty_postgresql, ON_NEW)
    part = "CREATE VIEW public.part AS SELECT archived_at FROM chatledger.threads_tenants_1;\n"
    run_script(empty_postgresql, part)
    error = refusal(empty_postgresql, to="0004")
    assert "public.answers, public.archived, public.part, public.plans;" in error


def test_only_views_on_the_migrated_schema_are_named(pg_database: Database) -> None:
    migrate(pg_database.url, schema="Other-1")
    run_script(pg_database, 'CREATE VIEW public.other AS SELECT * FROM "Other-1".scores;\n' + ON_OLD_VIEWS)
    error = refusal(pg_database, to="0004", schema="Other-1")
    assert "what these views read: public.other;" in error


@pytest.mark.parametrize("revision", released())
def test_the_list_names_all_views_that_a_revision_makes_anew(revision: str, empty_postgresql: Database) -> None:
    """Each is an object of its own: what PostgreSQL replaces keeps its number."""
    if revision != "0001":
        migrate(empty_postgresql.url, to=f"{int(revision) - 1:04}")
    before = _views(empty_postgresql)
    migrate(empty_postgresql.url, to=revision)
    assert {name for name, _ in _views(empty_postgresql) - before} == set(MADE_ANEW.get(revision, ()))


def _views(database: Database) -> set[tuple[str, int]]:
    query = (
        "SELECT relname, oid::int FROM pg_class WHERE relkind = 'v' AND relnamespace = to_regnamespace('chatledger')"
    )
    return {(name, number) for name, number in fetch(database, query)}
