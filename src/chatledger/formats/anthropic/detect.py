"""Whether a payload is surely a request to the Messages API.

A list of roles and texts is left to more common formats. A payload is recognised if it has something that no other
format writes: a `system` beside `messages`, or blocks of calls, results, thinking or media with a source in messages of
user and assistant.
"""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.names import MESSAGES, ROLES, SYSTEM
from chatledger.formats.anthropic.read import plain

_FOREIGN_KEYS = frozenset(
    {"tool_calls", "function_call", "tool_call_id", "reasoning_content", "refusal", "name", "kind", "parts", "extra"}
)
_OWN_BLOCKS: dict[str, tuple[str, type]] = {
    "tool_use": ("input", dict),
    "tool_result": ("tool_use_id", str),
    "thinking": ("thinking", str),
    "redacted_thinking": ("data", str),
    "server_tool_use": ("input", dict),
    "image": ("source", dict),
    "document": ("source", dict),
}
"""Blocks that no other format has, each with a required key and the type of its value."""


def is_anthropic(payload: object) -> bool:
    try:
        source = plain({MESSAGES: payload} if isinstance(payload, list) else payload, "")
    except DecodeError:
        return False
    if not isinstance(source, dict) or not isinstance(source.get(MESSAGES), list) or not source[MESSAGES]:
        return False
    return all(map(_is_message, source[MESSAGES])) and (
        _has_prompt(source) or any(map(_has_own_block, source[MESSAGES]))
    )


def _has_prompt(source: dict[str, Any]) -> bool:
    system = source.get(SYSTEM)
    return isinstance(system, str) or (isinstance(system, list) and bool(system) and all(map(_is_text, system)))


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or _FOREIGN_KEYS & message.keys() or message.get("type", "message") != "message":
        return False
    content, role = message.get("content"), message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return False
    return isinstance(content, str) or (isinstance(content, list) and all(map(_is_block, content)))


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def _is_text(block: Any) -> bool:
    return _is_block(block) and block["type"] == "text" and isinstance(block.get("text"), str)


def _has_own_block(message: dict[str, Any]) -> bool:
    return isinstance(message["content"], list) and any(map(_is_own_block, message["content"]))


def _is_own_block(block: dict[str, Any]) -> bool:
    required = _OWN_BLOCKS.get(block["type"])
    return required is not None and isinstance(block.get(required[0]), required[1])
