"""A project with migrations of its own in the same database: both upgrade, and neither sees the other's tables."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from chatledger.admin import migrate
from tests.conftest import Database
from tests.migrations.access import fetch
from tests.migrations.revisions import HEAD

ENV = """
import asyncio
from alembic import context
from sqlalchemy import Column, MetaData, Table, Text, create_engine, pool
from sqlalchemy.ext.asyncio import create_async_engine
import chatledger
import chatledger.admin

metadata = MetaData()
Table("customers", metadata, Column("name", Text, primary_key=True))
{more_tables}
URL, KIND = {url!r}, {kind!r}

def run(connection):
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_schemas={include_schemas},
        {filter}
    )
    with context.begin_transaction():
        context.run_migrations()

async def run_async():
    url = URL.replace("postgresql:", "postgresql+asyncpg:")
    engine = create_async_engine(url, poolclass=pool.NullPool, connect_args={{"server_settings": {settings}}})
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()

if KIND == "postgresql":
    asyncio.run(run_async())
else:
    engine = create_engine("sqlite:///" + URL, poolclass=pool.NullPool)
    with engine.begin() as connection:
        run(connection)
"""
REVISION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "a1", None, None, None

def upgrade():
    op.create_table("customers", sa.Column("name", sa.Text(), primary_key=True))
    {more_tables}

def downgrade():
    op.drop_table("customers")
"""
FILTER = "include_name=chatledger.admin.alembic_include_name,"


PUBLIC = {"search_path": "public"}  # the tests' role is called as our schema is, which a host's seldom is


def host(
    database: Database,
    folder: Path,
    *,
    filter: str = FILTER,  # noqa: A002
    runs: bool = False,
    settings: dict[str, str] = PUBLIC,
) -> Config:
    """The project, with one table; with `runs` also one that is called as one of ours is."""
    (folder / "host" / "versions").mkdir(parents=True)
    declared = 'Table("runs", metadata, Column("distance", Text, primary_key=True))' if runs else ""
    made = 'op.create_table("runs", sa.Column("distance", sa.Text(), primary_key=True))' if runs else ""
    everywhere = database.kind == "postgresql" and settings == PUBLIC
    env = ENV.format(
        url=database.url,
        kind=database.kind,
        filter=filter,
        more_tables=declared,
        settings=settings,
        include_schemas=everywhere,
    )
    (folder / "host" / "env.py").write_text(env)
    (folder / "host" / "versions" / "a1.py").write_text(REVISION.format(more_tables=made))
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(folder / "host"))
    config.set_main_option("path_separator", "os")
    return config


@pytest.mark.parametrize("ours_first", [True, False])
def test_both_upgrade_and_autogenerate_finds_no_difference(ours_first: bool, empty: Database, tmp_path: Path) -> None:
    config = host(empty, tmp_path)
    if ours_first:
        migrate(empty.url)
        command.upgrade(config, "head")
    else:
        command.upgrade(config, "head")
        migrate(empty.url)
    command.check(config)
    prefix = "chatledger." if empty.kind == "postgresql" else ""
    versions = f"SELECT (SELECT version_num FROM alembic_version), (SELECT version_num FROM {prefix}chatledger_version)"
    assert fetch(empty, versions) == [("a1", HEAD)]


def test_without_the_filter_autogenerate_would_drop_our_tables(empty: Database, tmp_path: Path) -> None:
    config = host(empty, tmp_path, filter="")
    migrate(empty.url)
    command.upgrade(config, "head")
    with pytest.raises(CommandError, match="remove_table"):
        command.check(config)


def test_downgrading_our_schema_keeps_the_hosts_tables(empty: Database, tmp_path: Path) -> None:
    config = host(empty, tmp_path)
    command.upgrade(config, "head")
    migrate(empty.url)
    migrate(empty.url, to="base")
    command.check(config)


def test_on_postgresql_a_host_keeps_its_own_table_of_our_name(empty_postgresql: Database, tmp_path: Path) -> None:
    config = host(empty_postgresql, tmp_path, runs=True)
    command.upgrade(config, "head")
    migrate(empty_postgresql.url)
    command.check(config)
    assert {schema for (schema,) in fetch(empty_postgresql, TABLES_CALLED_RUNS)} == {"public", "chatledger"}


TABLES_CALLED_RUNS = "SELECT schemaname FROM pg_tables WHERE tablename = 'runs'"


def test_a_role_named_like_our_schema_sees_our_tables_without_a_schema(
    empty_postgresql: Database, tmp_path: Path
) -> None:
    """As to the tests' own role: `search_path` begins with its name."""
    migrate(empty_postgresql.url)
    config = host(empty_postgresql, tmp_path, settings={})
    command.upgrade(config, "head")
    command.check(config)
    customers = "SELECT schemaname FROM pg_tables WHERE tablename = 'customers'"
    assert fetch(empty_postgresql, customers) == [("chatledger",)]
