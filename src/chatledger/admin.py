"""Administration: migrates, checks, backs up and restores a database, and reads the files of keys."""

from __future__ import annotations

from chatledger.storage.drivers.urls import (
    Address,
    configure_sqlite,
)
from chatledger.storage.rows.keys import (
    read_keys,
)
from chatledger.storage.upgrade.backup import (
    backup,
    restore,
)
from chatledger.storage.upgrade.migrate import migrate, offline_sql, schema_status
from chatledger.storage.upgrade.revisions import alembic_include_name
from chatledger.storage.upgrade.versions import (
    SchemaStatus,
)

__all__ = [
    "Address",
    "SchemaStatus",
    "alembic_include_name",
    "backup",
    "configure_sqlite",
    "migrate",
    "offline_sql",
    "read_keys",
    "restore",
    "schema_status",
]
