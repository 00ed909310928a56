"""What was added to a message after it was committed, and the agents of a thread. Neither changes a message."""

from __future__ import annotations

from chatledger.models.base import Model
from chatledger.models.json import JsonObject


class Output(Model):
    """An output of the message at (branch, seq), or of one of its tool calls. `nonce` tells it from the others.

    `text` is its content, in base64 where the mime type is no text; `body` every other field that it has.
    """

    branch: int
    seq: int
    call_idx: int | None = None
    nonce: str
    mime_type: str
    text: str
    body: JsonObject | None = None


class ThreadAgent(Model):
    """An agent of a thread: its definition, and what the thread overrides of it."""

    name: str
    definition: JsonObject
    settings: JsonObject | None = None
    is_default: bool = False
