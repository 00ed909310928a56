"""Which tenants are encrypted, and whether the database is as a whole. For those, a ledger without keys stores nothing.

A tenant has its mark in its row of `tenants`. The record of the database stands beside the revision of its schema, so
it holds for tenants that nobody has written for yet. It is about no tenant, and every role reads that row already.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import update

from chatledger.errors import EncryptionError
from chatledger.storage.drivers.sql import ReadSql, WriteSql, insert_if_absent
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.tables import tenants

_RECORDED = "SELECT 1 FROM {schema}chatledger_version WHERE encrypted_at IS NOT NULL"
_RECORD = "UPDATE {schema}chatledger_version SET encrypted_at = :now WHERE encrypted_at IS NULL"
_MAY_RECORD = "SELECT has_column_privilege('{schema}chatledger_version', 'encrypted_at', 'UPDATE')"
_MIGRATE = "run as the owner of the tables: chatledger migrate --encrypted"
MARKED_TENANT = "SELECT 1 FROM {schema}tenants WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL"
"""Rows if the tenant is marked."""
ENCRYPTED_TENANT = f"{MARKED_TENANT}{{or_recorded}}"
"""Rows if a ledger without keys may store nothing for the tenant. On a distributed database, rows if it is marked."""
UNLESS_ENCRYPTED = f" AND NOT EXISTS ({ENCRYPTED_TENANT})"
"""The condition under which a statement stores words without keys."""


def is_recorded(sql: ReadSql) -> bool:
    """Whether the database is recorded as encrypted as a whole."""
    return bool(sql.fetch(_RECORDED, {}))


def is_marked(sql: ReadSql, tenant: Tenant) -> bool:
    """Whether nothing is left to `mark`."""
    assert tenant.encryption is not None
    marked = bool(sql.fetch(MARKED_TENANT, {"tenant": tenant.key}))
    return marked and (not tenant.encryption.required or is_recorded(sql))


def mark(sql: WriteSql, tenant: Tenant) -> None:
    """Mark the tenant as encrypted, and the database too if its keys are required. From then on a ledger without keys
    refuses to write for it. Raises EncryptionError if the database is not recorded yet and only `migrate` can.
    """
    assert tenant.encryption is not None
    now = datetime.now(UTC)
    if not sql.execute(insert_if_absent(sql, tenants).values(tenant_id=tenant.name, encrypted_at=now)).rowcount:
        own = (tenants.c.tenant_id == tenant.name, tenants.c.encrypted_at.is_(None))
        sql.execute(update(tenants).where(*own).values(encrypted_at=now))
    if tenant.encryption.required and not is_recorded(sql):
        _record(sql, now)


def _record(sql: WriteSql, now: datetime) -> None:
    """Record that the database is encrypted, for all tenants. Raises EncryptionError if only `migrate` can."""
    if sql.distributed:  # a writer that remembers the end of a thread reads its own server only, and not the record
        raise EncryptionError(
            "not-recorded", f"a write cannot record that a distributed database is encrypted; {_MIGRATE}"
        )
    if sql.dialect == "postgresql" and not sql.fetch(_MAY_RECORD, {})[0][0]:
        raise EncryptionError("not-recorded", f"this role may not record that the database is encrypted; {_MIGRATE}")
    sql.fetch(_RECORD, {"now": sql.moment(now)})


def refuse_without_keys(sql: WriteSql, tenant: Tenant) -> None:
    """Raises EncryptionError if the tenant or the database is encrypted and the ledger has no keys."""
    refuse_marked(sql, tenant)
    refuse_recorded(sql, tenant)


def refuse_marked(sql: WriteSql, tenant: Tenant) -> None:
    """The same in one statement. On a distributed database it raises only for an encrypted tenant, so the transaction
    has to look for the record as well.
    """
    if tenant.encryption is None and sql.fetch(ENCRYPTED_TENANT, {"tenant": tenant.key}):
        raise tenant_encrypted(tenant.name)


def refuse_recorded(sql: WriteSql, tenant: Tenant) -> None:
    """On a distributed database, raises EncryptionError if it is recorded as encrypted and the ledger has no keys."""
    if sql.distributed and tenant.encryption is None and is_recorded(sql):
        raise tenant_encrypted(tenant.name)


def tenant_encrypted(tenant: str) -> EncryptionError:
    detail = f"tenant {tenant!r} is encrypted; open the ledger with encryption=…, or give `chatledger --keys FILE …`"
    return EncryptionError("tenant-encrypted", detail)
