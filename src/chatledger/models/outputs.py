"""Outputs added to a message after its commit, and the agents of a thread. Neither changes a message."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chatledger.models.base import Model, Text
from chatledger.models.json import JsonObject


class Output(Model):
    """An output that was added to a message, or to one of its tool calls, after the message was stored."""

    branch: Annotated[int, Field(ge=0, lt=2**31)]
    """The branch that stores the message."""
    seq: Annotated[int, Field(ge=1, lt=2**63)]
    """The position of the message."""
    call_idx: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """The call of the message that the output is for, counted from 0; None for the message."""
    nonce: Text
    """A text that tells outputs apart."""
    mime_type: Text
    """The type of the content, such as `text/plain`."""
    text: Text
    """The content, in base64 if the type is not text."""
    body: JsonObject | None = None
    """The other fields of the output."""


class ThreadAgent(Model):
    """An agent that may answer in a thread."""

    name: Text
    """The name of the agent, of 1 to 512 bytes."""
    definition: JsonObject
    """The definition of the agent."""
    settings: JsonObject | None = None
    """The settings that the thread overrides."""
    is_default: bool = False
    """Whether the agent answers messages that name none."""
