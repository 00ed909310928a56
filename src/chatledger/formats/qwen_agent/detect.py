"""Whether a payload is certainly of Qwen-Agent."""

from __future__ import annotations

from typing import Any

from chatledger.formats.qwen_agent.constants import FUNCTION_ID, ROLES
from chatledger.formats.qwen_agent.parts import item_problems
from chatledger.formats.qwen_agent.source import is_message_object


def is_qwen_agent(payload: object) -> bool:
    """True for a list with a message object, and for dicts if one of them has content items or a function_id."""
    if not isinstance(payload, (list, tuple)):
        return False
    if all(isinstance(message, dict) for message in payload):
        return all(message.get("role") in ROLES for message in payload) and any(map(_is_telling, payload))
    return any(map(is_message_object, payload))


def _is_telling(message: dict[str, Any]) -> bool:
    extra, content = message.get("extra"), message.get("content")
    if isinstance(extra, dict) and FUNCTION_ID in extra:
        return True
    items = content if isinstance(content, list) else []
    return any(next(item_problems(item), None) is None for item in items)
