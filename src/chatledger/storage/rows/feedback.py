"""Rows of `feedback` as models."""

from __future__ import annotations

from typing import Any

from chatledger.models import Feedback
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.schema.tables import feedback

FEEDBACK_COLUMNS = tuple(column.name for column in feedback.c if column.name in {*Feedback.model_fields, "call_idx"})
"""The columns of a Feedback. `to_feedback` reads them."""


def to_feedback(tenant: Tenant, row: Any) -> Feedback:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, feedback, {name: row[name] for name in FEEDBACK_COLUMNS})
    call_index = decrypted.pop("call_idx")
    return to_model(Feedback, feedback, row, {**decrypted, "call_index": call_index}, {"call_index": "call_idx"})
