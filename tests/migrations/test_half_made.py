"""A migrator that dies while PostgreSQL creates an index concurrently leaves an invalid index."""

from __future__ import annotations

from chatledger.admin import migrate
from tests.conftest import Database
from tests.migrations.access import fetch, run_script
from tests.migrations.catalog import read_catalog

HALF_MADE = """
CREATE INDEX branches_partial_idx ON chatledger.branches (tenant_id, thread_id, branch) WHERE partial_seq IS NOT NULL;
UPDATE pg_index SET indisvalid = false, indisready = false
  WHERE indexrelid = 'chatledger.branches_partial_idx'::regclass;
"""


def test_a_half_made_index_is_made_again(pg_database: Database) -> None:
    whole = read_catalog(pg_database)
    migrate(pg_database.url, to="0003")
    run_script(pg_database, HALF_MADE)
    assert fetch(pg_database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(1,)]
    migrate(pg_database.url)
    assert read_catalog(pg_database) == whole
