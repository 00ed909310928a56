"""Rows of `kv` as models."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, type_coerce

from chatledger.models import KvValue
from chatledger.storage.rows.encryption import Tenant, decrypt_json, decrypt_values, to_model
from chatledger.storage.schema.tables import kv

KV_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(kv.c[name] for name in ("kind", "scope_id", "namespace", "key", "version", "updated_at")),
    type_coerce(kv.c.value, Text()).label("value"),
)
"""The columns that `to_value` reads. The value is read as it is stored, because a stored null is a value."""


def to_value(tenant: Tenant, row: Any) -> KvValue:
    """Raises DamagedCell and EncryptionError."""
    fields = decrypt_values(tenant, kv, {name: row[name] for name in row if name != "value"})
    value = decrypt_json(tenant, kv, "value", row)
    plain = {name: fields[name] for name in ("key", "version", "updated_at")}
    return to_model(KvValue, kv, row, {**plain, "value": value})
