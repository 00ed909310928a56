"""Administration: migrates, checks, backs up and restores a database, and reads the files of keys."""

from __future__ import annotations

from chatledger.annexes import load
from chatledger.arguments import BOOL, FUNCTION_OR_NONE, STR, STR_OR_NONE, require
from chatledger.errors import InvalidArgument
from chatledger.models import CopyReport, Progress
from chatledger.storage.drivers.urls import (
    ADDRESS,
    Address,
    configure_sqlite,
    read_url,
)
from chatledger.storage.rows.keys import (
    read_keys,
)
from chatledger.storage.schema.tables import SCHEMA
from chatledger.storage.upgrade.backup import (
    backup,
    restore,
)
from chatledger.storage.upgrade.migrate import migrate, offline_sql, schema_status
from chatledger.storage.upgrade.revisions import alembic_include_name
from chatledger.storage.upgrade.versions import (
    SchemaStatus,
    require_schema_name,
)

__all__ = [
    "Address",
    "SchemaStatus",
    "alembic_include_name",
    "backup",
    "configure_sqlite",
    "copy",
    "migrate",
    "offline_sql",
    "read_keys",
    "restore",
    "schema_status",
]


async def copy(
    source: Address,
    target: Address,
    *,
    tenant: str | None = None,
    verify: bool = False,
    done: bool = False,
    keep_open_runs: bool = False,
    allow_empty: bool = False,
    schema: str = SCHEMA,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy everything of a database to another one, between SQLite and PostgreSQL in either direction, or everything of
    one tenant. Cells go as they are stored, ciphertext too, so no keys are needed. The source is read in one snapshot
    and never written, so it may stay in use.

        await chatledger.admin.copy("chat.db", "postgresql://owner@db/chat")  # as often as you like
        await chatledger.admin.copy("chat.db", "postgresql://owner@db/chat", verify=True, done=True)

    A missing or an empty target is migrated first; one with rows of its own is refused. From then on only copies from
    this source write there: a ledger reads it, and its writes raise StorageError. Call it again to bring what changed
    since, and after an interruption. `verify=True` writes nothing and compares: the report's `differences` say where
    they are not equal. `done=True` opens the target for all writers; with `verify=True`, only if both agree.

    In the target, drafts have no lease, and runs that are open are cancelled when they began, with the error "moved";
    `keep_open_runs=True` leaves them open. What a tombstone of either database names is not copied. A source without
    threads is refused if the target has some, unless `allow_empty=True`. `schema` is that of both databases on
    PostgreSQL, where the role must own the tables. `progress` receives the number of threads done and of all.

    Raises StorageError, SchemaMismatch for a source older than 0006, and InvalidArgument.
    """
    require(ADDRESS, source=source, target=target)
    require(STR_OR_NONE, tenant=tenant)
    require(STR, schema=schema)
    require(BOOL, verify=verify, done=done, keep_open_runs=keep_open_runs, allow_empty=allow_empty)
    require(FUNCTION_OR_NONE, progress=progress)
    if source is None or target is None:
        raise InvalidArgument("target" if target is None else "source", "must name a database")
    report: CopyReport = await load("chatledger.transfer.copy.run:copy_database", "admin.copy")(
        read_url(source),
        read_url(target),
        tenant=tenant,
        verify=verify,
        done=done,
        keep_open_runs=keep_open_runs,
        allow_empty=allow_empty,
        schema=require_schema_name(schema),
        progress=progress,
    )
    return report
