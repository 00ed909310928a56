"""Whether a payload is certainly a list of LangChain's messages: objects, or dicts of a `type` and its `data`."""

from __future__ import annotations

from typing import Any

_PACKAGE = "langchain_core.messages"


def is_langchain(payload: object) -> bool:
    """True only if every item is a message, and every dict repeats its type in its data."""
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(message) or _is_dict(message) for message in payload)


def is_object(value: object) -> bool:
    """Whether the value is a message object: of a class of langchain-core, or of a subclass from elsewhere."""
    return any(cls.__module__.startswith(_PACKAGE) for cls in type(value).__mro__)


def _is_dict(message: Any) -> bool:
    if not isinstance(message, dict) or message.keys() != {"type", "data"}:
        return False
    data = message["data"]
    if not isinstance(data, dict) or not isinstance(data.get("content"), (str, list)):
        return False
    return isinstance(message["type"], str) and bool(data.get("type") == message["type"])
