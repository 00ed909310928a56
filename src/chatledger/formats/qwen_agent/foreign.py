"""Splits a message of another format as Qwen-Agent would.

In Qwen-Agent, reasoning, content and each call are separate messages, in this order. The roles are system, user,
assistant and function.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.qwen_agent.parts import item_of
from chatledger.formats.qwen_agent.read import KEY, fields_of, join
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue, same_json

_ROLES = {"developer": "system", "function": "tool"}
_SHARED = frozenset({"system", "user", "assistant", "tool"})


def split(message: ChatMessage, *, result_name: str | None) -> list[ChatMessage]:
    """The pieces, each of which is written as one message. Empty if Qwen-Agent has no such role.

    `result_name` is the name of the call that a result answers. Qwen-Agent names results, other formats often do not.
    """
    role = _role_of(message)
    if role is None:
        return []
    base = ChatMessage(
        role=role,
        name=result_name if message.name is None and role == "tool" else message.name,
        tool_call_id=message.tool_call_id if role == "tool" else None,
        content="",
    )
    return [base.model_copy(update=update) for update in _updates(message)]


def _role_of(message: ChatMessage) -> str | None:
    role = _ROLES.get(message.role, message.role)
    if role == "custom":  # for display only, unless another format stored a role there
        role = (message.custom_data or {}).get("role", role)
        role = _ROLES.get(role, role) if isinstance(role, str) else "custom"
    return role if role in _SHARED else None


def _updates(message: ChatMessage) -> list[dict[str, object]]:
    """The fields of each piece."""
    content = _spoken(message)
    updates: list[dict[str, object]] = []
    if (reasoning := _reasoning(message)) is not None:
        updates.append({"reasoning": reasoning})
    if content:
        updates.append({"content": content})
    updates += [{"tool_calls": [call]} for call in message.tool_calls or ()]
    return updates or [{"content": "" if content is None else content}]


def _reasoning(message: ChatMessage) -> str | list[Part] | None:
    """All reasoning: the field `reasoning`, then the thoughts in the content; as text if that loses nothing."""
    thoughts = [part for part in _parts(message.content) if isinstance(part, ThinkPart)]
    if message.reasoning is None and not thoughts:
        return None
    own = [TextPart(text=message.reasoning)] if isinstance(message.reasoning, str) else _parts(message.reasoning)
    parts = [part for part in [*own, *thoughts] if _fits(part)]
    if all(isinstance(part, (TextPart, ThinkPart)) for part in parts):
        return message.reasoning_text
    return parts


def _spoken(message: ChatMessage) -> str | list[Part] | None:
    if not isinstance(message.content, list):
        return message.content
    spoken = [part for part in message.content if not isinstance(part, ThinkPart)]
    return [part for part in spoken if _fits(part)] if spoken or not message.content else None


def _parts(content: str | list[Part] | None) -> list[Part]:
    return content if isinstance(content, list) else []


def _fits(part: Part) -> bool:
    """Whether an item can hold the part. Only its own format can read an opaque part."""
    return not isinstance(part, OpaquePart) and item_of(part) is not None


def with_carried(encoded: Sequence[dict[str, JsonValue]], message: ChatMessage) -> list[dict[str, JsonValue]]:
    """The encoded messages of a message. The first carries the fields that reading them would not return."""
    first, *others = encoded
    joined, original = fields_of(join(encoded)), fields_of(message)
    fields = {key: value for key, value in original.items() if not same_json(value, joined[key])}
    extra = {**(first.get("extra") or {}), KEY: {"rows": len(encoded), "fields": fields}}
    return [{**first, "extra": extra}, *others]
