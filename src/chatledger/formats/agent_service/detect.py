"""Whether a payload is certainly of an agent service."""

from __future__ import annotations

from chatledger.formats.agent_service.models import ChatHistory, ChatMessage
from chatledger.formats.agent_service.source import MESSAGES, fields_of
from chatledger.formats.agent_service.write import ROLE_OF_TYPE

_FIELDS = frozenset(ChatMessage.model_fields)


def is_agent_service(payload: object) -> bool:
    """True only for messages with a type and a content of this format and no key of another."""
    if isinstance(payload, ChatHistory):
        return True
    messages = payload if isinstance(payload, list) else (fields_of(payload) or {}).get(MESSAGES)
    return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))


def _is_message(value: object) -> bool:
    fields = fields_of(value)
    if fields is None or not isinstance(fields.get("type"), str) or not isinstance(fields.get("content"), str):
        return False
    if fields["type"] not in ROLE_OF_TYPE:
        return False
    return fields.keys() <= _FIELDS if isinstance(value, dict) else fields.keys() >= _FIELDS
