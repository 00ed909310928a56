"""The codec of `format="anthropic"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.foreign import fit
from chatledger.formats.anthropic.parts import MESSAGES, NAME, PAYLOAD, ROLES, SYSTEM, is_listed
from chatledger.formats.anthropic.read import plain, read_payload
from chatledger.formats.anthropic.write import (
    PairedMessage,
    content_blocks,
    joins,
    pair_messages,
    write_group,
    write_system,
)
from chatledger.formats.codec import Decoded, Written
from chatledger.formats.wire.residual import nested, own_residual, put_back
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue


@dataclass(frozen=True, slots=True)
class Anthropic:
    """A request's `{"system", "messages"}`, or its list of messages alone, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_anthropic(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for the system prompt, one for each tool result, and one for the rest of each message.

        Lenient rules keep an unknown role as its text and a malformed block whole.
        """
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A dict of `messages`, and `system` if there is one, for `client.messages.create(…)`.

        `carry` has no effect: the API refuses unknown keys, so there is no free field.
        """
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The request: messages of the format as they came in, others fitted to the format.

    Leading system messages are the `system` of the request. A later one stays in its position in `messages`, where the
    API accepts it as well.
    """
    fitted = [(position, message) for position, message in enumerate(map(fit, messages)) if message is not None]
    leading = next((count for count, (_, message) in enumerate(fitted) if not _is_prompt(message)), len(fitted))
    prompts, groups = fitted[:leading], _groups(pair_messages(fitted[leading:]))
    payload: dict[str, Any] = {SYSTEM: _system([message for _, message in prompts])} if prompts else {}
    payload[MESSAGES] = [write_group(group) for group in groups]
    origins: list[tuple[int, ...]] = [tuple(position for position, _ in prompts)] if prompts else []
    origins += [(paired.position,) for group in groups for paired in group]
    around = nested(own_residual(messages[0], NAME), PAYLOAD) if messages else None
    own = [position for position, message in enumerate(messages) if message.format == NAME]
    return Written(put_back(payload, around), origins, own)


def _is_prompt(message: ChatMessage) -> bool:
    return message.role == "system" and not is_listed(message)


def _system(prompts: Sequence[ChatMessage]) -> JsonValue:
    """A single prompt unchanged, several prompts as one list of their blocks."""
    if len(prompts) == 1:
        return write_system(prompts[0])
    return [block for prompt in prompts for block in content_blocks(prompt) if block.get("text") != ""]


def _groups(messages: Sequence[PairedMessage]) -> list[list[PairedMessage]]:
    groups: list[list[PairedMessage]] = []
    for paired in messages:
        if groups and joins(groups[-1][-1].message, paired.message):
            groups[-1].append(paired)
        else:
            groups.append([paired])
    return groups


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely a request to the Messages API.
#
# A list of roles and texts is left to more common formats. A payload is recognised if it has something that no other
# format writes: a `system` beside `messages`, or blocks of calls, results, thinking or media with a source in messages
# of user and assistant.

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


CODEC = Anthropic()
