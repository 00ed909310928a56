"""Rows of `runs` as models."""

from __future__ import annotations

from typing import Any

from chatledger.models import Run, Usage
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.schema.tables import runs

USAGE_COLUMNS = ("input_tokens", "output_tokens", "total_tokens", "usage_details", "cost")
RUN_COLUMNS = tuple(column for column in runs.c if column.name in {"tenant_id", *Run.model_fields, *USAGE_COLUMNS})
"""Those that a Run shows. The others belong to durable runs, and one of them is a secret."""


def to_run(tenant: Tenant, row: Any) -> Run:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, runs, row)
    fields = {name: decrypted[name] for name in row if name in Run.model_fields}
    return to_model(Run, runs, row, {**fields, "usage": to_usage(row)})


def to_usage(row: Any) -> Usage | None:
    reported = {name.removeprefix("usage_"): row[name] for name in USAGE_COLUMNS}
    has_usage = any(value is not None for value in reported.values())
    return to_model(Usage, runs, row, reported, {"details": "usage_details"}) if has_usage else None
