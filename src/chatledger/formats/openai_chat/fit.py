"""Messages of other origin as messages that chat completions can say.

Only models come and go here: what fits is then written as a message of the format itself is.
"""

from __future__ import annotations

import re

from chatledger.formats.openai_chat.fit_parts import fit_part
from chatledger.formats.openai_chat.message import NAME, ROLES, is_function_call
from chatledger.formats.wire.pairing import Answered, made_id
from chatledger.models import LENIENT, ChatMessage, Part, ToolCall
from chatledger.models.json import dumps

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""What the API takes as the name of a participant."""


def fit(message: ChatMessage, place: int, answered: Answered | None) -> ChatMessage | None:
    """The message with nothing that cannot be said; None for one that no model sees."""
    if message.role == "custom":
        return None
    role = message.role if message.role in ROLES and message.role != "function" else "user"
    calls = _fit_calls(message, place) if role == "assistant" else None
    fields: dict[str, object] = {"role": role, "tool_calls": calls, "content": _fit_content(message, role, calls)}
    fields |= _fit_result(message, place, answered) if role == "tool" else {"name": _fit_name(message.name)}
    return ChatMessage.model_validate(fields, context=LENIENT)


def _fit_name(name: str | None) -> str | None:
    return name if name is not None and _NAME.fullmatch(name) else None


def _fit_result(message: ChatMessage, place: int, answered: Answered | None) -> dict[str, object]:
    """A result names its call by the id alone."""
    if answered is not None and is_function_call(answered.asker):
        return {"role": "function", "name": answered.call.name}
    if message.tool_call_id is not None:
        return {"tool_call_id": message.tool_call_id}
    return {"tool_call_id": made_id(message, place) if answered is None else _id_of(answered)}


def _id_of(answered: Answered) -> str | None:
    """A message of the format itself is written as it came, so a call without an id has none there."""
    return answered.call.id if answered.asker.format == NAME else answered.id


def _fit_calls(message: ChatMessage, place: int) -> list[ToolCall] | None:
    """The calls of an assistant; a list without any has no place."""
    if not message.tool_calls:
        return None
    return [_fit_call(call, made_id(message, place, idx)) for idx, call in enumerate(message.tool_calls)]


def _fit_call(call: ToolCall, made: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments or {})
    return ToolCall(id=made if call.id is None else call.id, name=call.name, arguments=arguments)


def _fit_content(message: ChatMessage, role: str, calls: list[ToolCall] | None) -> str | list[Part] | None:
    """Content that is not empty of parts; null stands only beside calls."""
    if isinstance(message.content, str):
        return message.content
    parts = (fit_part(part, role=role, source_format=message.format) for part in message.content or ())
    return [part for part in parts if part is not None] or (None if calls else "")
