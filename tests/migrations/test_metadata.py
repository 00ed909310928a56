"""The properties of every table, read from the metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from chatledger.storage.schema.tables import INSERTION_ORDER, metadata, workers
from tests.conftest import Database
from tests.migrations.catalog import read_catalog

OF_NO_TENANT = {"workers_pkey", "run_leases_place_idx"}
"""The key of the processes that run agents, and the index by which each finds its runs among those of all tenants."""
SINCE_A_RELEASE = {"run_leases", "run_decisions"}
"""The tables that point at one which the release before deletes from, without knowing them."""


def faults(tables: MetaData) -> list[str]:
    """The faults that make a table global, or let a row of one tenant point at another's."""
    return [fault for table in tables.sorted_tables for fault in (*_keys(table), *_global(table))]


def _keys(table: Table) -> Iterator[str]:
    keys = (PrimaryKeyConstraint, UniqueConstraint, ForeignKeyConstraint)
    named = [(item, list(item.columns)) for item in table.constraints if isinstance(item, keys)]
    for item, columns in [*named, *((index, list(index.columns)) for index in table.indexes)]:
        if [column.name for column in columns][:1] != ["tenant_id"] and item.name not in OF_NO_TENANT:
            yield f"{item.name}: tenant_id is not in front"
        if isinstance(item, ForeignKeyConstraint):
            if next(iter(item.elements)).column.name != "tenant_id":
                yield f"{item.name}: points at another tenant"
            cascade = "CASCADE" if table.name in SINCE_A_RELEASE else None
            if item.deferrable or item.initially or item.ondelete != cascade or item.onupdate:
                yield f"{item.name}: not plain and immediate"


def _global(table: Table) -> Iterator[str]:
    for column in table.columns:
        if column.default or column.server_default or column.server_onupdate or column.onupdate or column.identity:
            yield f"{table.name}.{column.name}: has a default"
        if column is table.autoincrement_column:
            yield f"{table.name}.{column.name}: counts"


def test_no_table_is_global() -> None:
    assert faults(metadata) == []


@pytest.mark.parametrize(
    "table",
    [
        Table("t", MetaData(), Column("tenant_id", Text), Column("id", Text, primary_key=True)),
        Table("t", MetaData(), Column("tenant_id", Text, primary_key=True), Column("id", Text), UniqueConstraint("id")),
        Table("t", MetaData(), Column("tenant_id", Text, primary_key=True), Column("id", Text), Index(None, "id")),
        Table("t", MetaData(), Column("tenant_id", Text, primary_key=True), Column("n", Integer, Identity())),
        Table("t", MetaData(), Column("tenant_id", Text, primary_key=True), Column("n", Text, server_default="")),
    ],
)
def test_a_global_table_is_noticed(table: Table) -> None:
    assert len(faults(table.metadata)) == 1


def test_rows_can_be_inserted_in_the_order_of_the_tables() -> None:
    assert set(INSERTION_ORDER) == set(metadata.tables.values()) - {workers}
    for place, table in enumerate(INSERTION_ORDER):
        targets = {next(iter(key.elements)).column.table for key in table.foreign_key_constraints}
        assert targets <= set(INSERTION_ORDER[:place]), table.name


def test_a_database_has_no_sequence_and_no_trigger(database: Database) -> None:
    catalog = read_catalog(database)
    if database.kind == "sqlite":
        assert {name.split()[0] for name in catalog} == {"table", "index", "view"}
        assert "table sqlite_sequence" not in catalog
        return
    assert catalog["triggers"] == []
    assert {kind for _, kind, *_ in catalog["relations"]} == {"r", "i", "v"}
    assert {column[-3:] for column in catalog["columns"]} == {("", "", None)}
