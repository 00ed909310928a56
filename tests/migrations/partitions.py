"""The same tables on PostgreSQL, hash-partitioned by tenant: what stands in for an engine that distributes them.

The one table without a tenant stays whole.

A partitioned table holds no rows, so storage parameters go on its partitions. Keys and indexes are declared once, on
the table; PostgreSQL builds one for each partition and attaches it. A foreign key to a partitioned table gets a child
for each partition that it points at, under another name: errors are read by columns, never by name.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, Table
from sqlalchemy.schema import CreateSchema, SchemaItem

from chatledger.storage.schema.tables import SCHEMA, metadata
from chatledger.storage.upgrade.versions import create_views, require_schema_name, stamp

_PARTITION = "_tenants_"


def create_partitioned_schema(connection: Connection, schema: str = SCHEMA, *, partitions: int) -> None:
    """All tables and views at this release's revision, each table in `partitions` parts by tenant."""
    require_schema_name(schema)
    connection.execute(CreateSchema(schema, if_not_exists=True))
    target = MetaData(naming_convention=metadata.naming_convention)
    tables = [_partitioned(table, target, schema) for table in metadata.sorted_tables]
    target.create_all(connection, checkfirst=False)
    for original, table in zip(metadata.sorted_tables, tables, strict=True):
        for remainder in range(partitions if "tenant_id" in original.c else 0):
            connection.exec_driver_sql(_create_partition(original, table.schema, partitions, remainder))
    create_views(connection, schema)
    stamp(connection, schema)


def _partitioned(table: Table, target: MetaData, schema: str) -> Table:
    copy = table.to_metadata(target, schema=schema)
    if "tenant_id" not in table.c:
        return copy
    copy.dialect_options["postgresql"]["partition_by"] = "HASH (tenant_id)"
    copy.dialect_options["postgresql"]["with"] = {}
    return copy


def _create_partition(table: Table, schema: str | None, partitions: int, remainder: int) -> str:
    parameters = table.dialect_options["postgresql"]["with"] or {}
    storage = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return (
        f'CREATE TABLE "{schema}"."{table.name}{_PARTITION}{remainder}" PARTITION OF "{schema}"."{table.name}" '
        f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {remainder})" + (f" WITH ({storage})" if storage else "")
    )


def without_partitions(item: SchemaItem, name: str | None, type_: str, reflected: bool, _compared_to: Any) -> bool:
    """For Alembic's autogenerate (`include_object=`): leaves out partitions, and foreign keys that point at one."""
    if not reflected:
        return True
    if type_ == "table":
        return _PARTITION not in (name or "")
    if type_ == "foreign_key_constraint":
        return _PARTITION not in next(iter(item.elements)).target_fullname  # type: ignore[attr-defined]
    return True
