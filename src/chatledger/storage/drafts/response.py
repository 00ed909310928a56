"""The messages of a provider's response, of which a draft's message is the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatledger.ids import derived_id
from chatledger.models import ChatMessage
from chatledger.storage.append.request import in_run
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import load_range
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.text import encode_key

_DECODED = ("content", "reasoning", "tool_calls", "response_metadata", "custom_data", "format", "residual")
"""The fields of the draft's message that the response sets. Its ids, its place and its run were set when it opened."""


def response_of(opened: ChatMessage, decoded: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The draft's message with what the response says of it, and the messages that follow it."""
    own, following = opened, decoded
    if decoded and decoded[0].role == own.role:
        first, *following = decoded
        own = own.model_copy(update={name: getattr(first, name) for name in _DECODED})
        own = own.model_copy(update={"name": own.name if own.name is not None else first.name})
    own = own.model_copy(update={"state": "complete"})
    ids = [_following_id(own, index) for index in range(1, len(following) + 1)]
    named = [message.model_copy(update={"message_id": id_}) for message, id_ in zip(following, ids, strict=True)]
    return [own, *in_run(named, own.run_id)]


def with_fields(messages: Sequence[ChatMessage], fields: Mapping[str, Any]) -> list[ChatMessage]:
    """The messages, with the keys of these fields added to those of the first one."""
    own, *following = messages
    added = {name: {**(getattr(own, name) or {}), **given} for name, given in fields.items()}
    return [own.model_copy(update=added), *following]


def _following_id(first: ChatMessage, index: int) -> str:
    """The id of a message that follows a draft's message. A retry of the draft finds it by the same id."""
    return derived_id("response", first.thread_id or "", first.message_id or "", str(index))


def load_response(sql: ReadSql, tenant: Tenant, first: ChatMessage) -> list[ChatMessage]:
    """The messages that a finished draft stored: the first one, and those that follow it."""
    thread, response, count = encode_key(first.thread_id or "", "thread_id"), [first], 1
    while True:
        begin = (first.seq or 0) + len(response)
        loaded = load_range(sql, tenant, thread, first.branch or 0, begin, begin + count - 1)
        for message in loaded:
            if message.message_id != _following_id(first, len(response)):
                return response
            response.append(message)
        if len(loaded) < count:
            return response
        count *= 2
