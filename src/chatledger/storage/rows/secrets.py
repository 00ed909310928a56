"""The two secrets of a tenant: random keys for digests that must not be computable from the digested words alone.

`digest_secret` keys the digests of content that is gone. It is an encrypted cell, so only a tenant with keys has one;
without keys these digests stay slow. `tombstone_secret` keys the tombstones. It is in clear, because erasing needs no
keys. Each is made when it is first needed, in the transaction that needs it, and never changes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from chatledger.errors import Erased
from chatledger.ids import erasure_digest
from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, encrypt_values
from chatledger.storage.schema.tables import tenants

Name: TypeAlias = Literal["digest_secret", "tombstone_secret"]
SECRET_BYTES = 32
_BLOCK = 64
"""The bytes of a block of SHA-256, to which HMAC fills its key up."""
_FORM = re.compile(f"[0-9a-f]{{{4 * _BLOCK}}}")


def new_secret() -> str:
    """The two keys that HMAC-SHA256 makes of a key, the inner and the outer one, in hexadecimal digits. So a statement
    of PostgreSQL, which has no HMAC, can compute the code with two hashes.
    """
    key = os.urandom(SECRET_BYTES).ljust(_BLOCK, b"\0")
    return "".join(bytes(byte ^ pad for byte in key).hex() for pad in (0x36, 0x5C))


def hmac_of(secret: str, message: bytes) -> str:
    inner, outer = bytes.fromhex(secret[: 2 * _BLOCK]), bytes.fromhex(secret[2 * _BLOCK :])
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).hexdigest()


def find_secret(sql: ReadSql, tenant: Tenant, name: Name) -> str | None:
    """None if nothing has needed it yet. Raises DamagedCell and EncryptionError."""
    row = sql.execute(select(tenants.c[name]).where(tenants.c.tenant_id == tenant.name)).mappings().one_or_none()
    if row is None or row[name] is None:
        return None
    secret: str = decrypt_values(tenant, tenants, dict(row), tenant_id=tenant.name)[name]
    if _FORM.fullmatch(secret) is None:
        raise damaged_cell(tenants, name, {})
    return secret


def make_secret(sql: WriteSql, tenant: Tenant, name: Name) -> str:
    """The secret, made if there is none, in a transaction. Of two that make it at once, the later one waits for the
    earlier one, and gets its secret.
    """
    earlier = find_secret(sql, tenant, name)
    if earlier is not None:
        return earlier
    new: dict[str, Any] = {name: new_secret()}
    if name == "digest_secret":
        new = encrypt_values(tenant, tenants, new, tenant_id=tenant.name)
    insert = postgresql.insert(tenants) if sql.dialect == "postgresql" else sqlite.insert(tenants)
    values = insert.values(tenant_id=tenant.name, **new)
    first_secret = {name: func.coalesce(tenants.c[name], values.excluded[name])}
    sql.execute(values.on_conflict_do_update(index_elements=[tenants.c.tenant_id], set_=first_secret))
    secret = find_secret(sql, tenant, name)
    assert secret is not None
    return secret


# --- Tombstones -------------------------------------------------------------------------------------------------------


def subjects_of(secret: str | None, kind: str, id_: str) -> list[str]:
    """What a tombstone of this id may hold: first what a new one holds, last what the ones of earlier releases hold,
    which knew no secret.
    """
    old = erasure_digest(kind, id_)
    return [old] if secret is None else [hmac_of(secret, old.encode()), old]


_KEYED = (
    "(SELECT encode(sha256(decode(substr(k.tombstone_secret, 129), 'hex')"
    " || sha256(decode(substr(k.tombstone_secret, 1, 128), 'hex') || convert_to({subject}, 'UTF8'))), 'hex')"
    " FROM {schema}tenants k WHERE k.tenant_id = :tenant)"
)
_ERASED = (
    "SELECT 1 FROM {schema}erasures e WHERE e.tenant_id = :tenant AND e.kind = 'thread'"
    " AND e.subject IN ({subject}, " + _KEYED + ")"
)
ERASED = _ERASED.replace("{subject}", ":subject::text")
"""On PostgreSQL: whether the thread was erased whose id has this `erasure_digest`."""
_ERASED_AMONG = "SELECT g.old FROM unnest(:subjects::text[]) AS g (old) WHERE EXISTS (" + (
    _ERASED.replace("{subject}", "g.old") + ") LIMIT 1"
)
# SQLite has no hash, and no round trip that an own statement would cost.
_ON_SQLITE = """
SELECT subject, NULL FROM {schema}erasures
WHERE tenant_id = :tenant AND kind = 'thread' AND subject IN (SELECT value FROM json_each(:subjects))
UNION ALL
SELECT NULL, tombstone_secret FROM {schema}tenants WHERE tenant_id = :tenant AND tombstone_secret IS NOT NULL
"""


def find_erased(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str]) -> str | None:
    """One of these threads that was erased, if any."""
    ids = {erasure_digest("thread", id_): id_ for id_ in thread_ids}
    if sql.dialect == "postgresql":
        rows = sql.fetch(_ERASED_AMONG, {"tenant": tenant.key, "subjects": list(ids)})
        return next((ids[old] for (old,) in rows), None)
    buried = sql.fetch(_ON_SQLITE, {"tenant": tenant.key, "subjects": dumps(list(ids))})
    for secret in [secret for _, secret in buried if secret is not None]:
        keyed = {hmac_of(secret, old.encode()): id_ for old, id_ in ids.items()}
        buried = [*buried, *sql.fetch(_ON_SQLITE, {"tenant": tenant.key, "subjects": dumps(list(keyed))})]
        ids |= keyed
    return next((ids[subject] for subject, _ in buried if subject is not None), None)


def refuse_erased(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str]) -> None:
    """Raises Erased if one of the threads was erased."""
    erased = find_erased(sql, tenant, thread_ids)
    if erased is not None:
        raise Erased(erased)
