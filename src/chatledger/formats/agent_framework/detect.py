"""Whether a payload is surely of the Microsoft Agent Framework: messages have a type and `contents`."""

from __future__ import annotations

from typing import Any

from chatledger.formats.agent_framework.names import CONTENTS, MESSAGE, TYPE
from chatledger.formats.agent_framework.objects import is_object


def is_agent_framework(payload: object) -> bool:
    """True only if each message is an object of the framework, or a dict as the framework dumps one."""
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(message) or _is_dict(message) for message in payload)


def _is_dict(message: Any) -> bool:
    if not isinstance(message, dict) or message.get(TYPE) != MESSAGE or not isinstance(message.get("role"), str):
        return False
    contents = message.get(CONTENTS)
    return isinstance(contents, list) and all(
        isinstance(one, dict) and isinstance(one.get(TYPE), str) for one in contents
    )
