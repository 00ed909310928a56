"""Rows of `outputs` and of `agents` as models."""

from __future__ import annotations

from typing import Any

from chatledger.models.outputs import Output, ThreadAgent
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.schema.tables import agents, outputs


def to_output(tenant: Tenant, row: Any) -> Output:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, outputs, row)
    return to_model(Output, outputs, row, {name: decrypted[name] for name in Output.model_fields})


def to_agent(tenant: Tenant, row: Any) -> ThreadAgent:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, agents, row)
    return to_model(ThreadAgent, agents, row, {name: decrypted[name] for name in ThreadAgent.model_fields})
