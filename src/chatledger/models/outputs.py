"""Outputs added to a message after its commit, and the agents of a thread. Neither changes a message."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chatledger.models.base import Model, Text
from chatledger.models.json import JsonObject


class Output(Model):
    """An output of the message at (branch, seq), or of one of its tool calls. `nonce` tells outputs apart.

    `text` is its content, in base64 if the mime type is not text. `body` holds its other fields.
    """

    branch: Annotated[int, Field(ge=0, lt=2**31)]
    seq: Annotated[int, Field(ge=1, lt=2**63)]
    call_idx: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    nonce: Text
    mime_type: Text
    text: Text
    body: JsonObject | None = None


class ThreadAgent(Model):
    """An agent of a thread: its definition, and the settings that the thread overrides."""

    name: Text
    definition: JsonObject
    settings: JsonObject | None = None
    is_default: bool = False
