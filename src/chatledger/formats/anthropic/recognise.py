"""Telling a request to the Messages API from what other systems write with roles and contents.

A list of roles and texts is left to the formats that are more common. What no other writes is claimed: a `system`
beside `messages`, and blocks of calls, results, thinking and sourced media among messages of user and assistant.
"""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.decode import MESSAGES, SYSTEM, plain
from chatledger.formats.anthropic.names import ROLES

_FOREIGN_KEYS = frozenset(
    {"tool_calls", "function_call", "tool_call_id", "reasoning_content", "refusal", "name", "kind", "parts", "extra"}
)
_TELLING: dict[str, tuple[str, type]] = {
    "tool_use": ("input", dict),
    "tool_result": ("tool_use_id", str),
    "thinking": ("thinking", str),
    "redacted_thinking": ("data", str),
    "server_tool_use": ("input", dict),
    "image": ("source", dict),
    "document": ("source", dict),
}
"""Blocks that no other format has, each with a key that it must have and what stands there."""


def is_anthropic(payload: object) -> bool:
    try:
        source = plain({MESSAGES: payload} if isinstance(payload, list) else payload, "")
    except DecodeError:
        return False
    if not isinstance(source, dict) or not isinstance(source.get(MESSAGES), list) or not source[MESSAGES]:
        return False
    return all(map(_is_ours, source[MESSAGES])) and (_has_prompt(source) or any(map(_is_telling, source[MESSAGES])))


def _has_prompt(source: dict[str, Any]) -> bool:
    system = source.get(SYSTEM)
    return isinstance(system, str) or (isinstance(system, list) and bool(system) and all(map(_is_text, system)))


def _is_ours(message: Any) -> bool:
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


def _is_telling(message: dict[str, Any]) -> bool:
    return isinstance(message["content"], list) and any(map(_is_telling_block, message["content"]))


def _is_telling_block(block: dict[str, Any]) -> bool:
    telling = _TELLING.get(block["type"])
    return telling is not None and isinstance(block.get(telling[0]), telling[1])
