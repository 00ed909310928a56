"""One step of the stairway: up, down and up again, with rows."""

from __future__ import annotations

from typing import Any

from chatledger.admin import migrate
from tests.conftest import Database
from tests.migrations.access import all_rows
from tests.migrations.catalog import Catalog, read_catalog
from tests.migrations.released.kept import released, restore
from tests.migrations.revisions import below

Rows = dict[str, list[tuple[Any, ...]]]


def climb(revision: str, database: Database, fresh: Database) -> None:
    """Raises AssertionError where a way down does not lead to what was there, or a second way up to another place.

    `fresh` is an empty database: it shows the schema below the revision as it is without any way down.
    """
    older = [name for name in released() if name < revision]
    restore(database, older[-1] if older else revision)
    migrate(database.url, to=revision)
    up, rows = read_catalog(database), all_rows(database)
    if below(revision) != "base":
        migrate(fresh.url, to=below(revision))
    migrate(database.url, to=below(revision), discard=True, discard_tombstones=True)
    assert _without_version(read_catalog(database)) == _without_version(read_catalog(fresh))
    kept = all_rows(database)
    migrate(database.url, to=revision)
    assert read_catalog(database) == up
    assert counts(all_rows(database), kept) == counts(rows, kept)


def counts(rows: Rows, tables: Rows) -> dict[str, int]:
    """How many rows there are in the tables that outlive the way down."""
    return {table: len(rows.get(table, [])) for table in tables if table != "chatledger_version"}


def _without_version(catalog: Catalog) -> Catalog:
    """The version table stays, empty, when all else is gone."""
    return {
        name: [entry for entry in entries if "chatledger_version" not in str(entry)]
        if isinstance(entries, list)
        else entries
        for name, entries in catalog.items()
        if "chatledger_version" not in name
    }
