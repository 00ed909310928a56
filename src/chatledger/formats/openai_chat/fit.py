"""Messages of other origin as messages that chat completions can say, and what that loses.

Only models come and go here: what fits is then written as a message of the format itself is.
"""

from __future__ import annotations

import re

from chatledger.formats.openai_chat import losses
from chatledger.formats.openai_chat.fit_parts import fit_part
from chatledger.formats.openai_chat.losses import LossLog
from chatledger.formats.openai_chat.message import ROLES
from chatledger.formats.openai_chat.pairing import Answered, made_id
from chatledger.models import LENIENT, ChatMessage, Part, ThinkPart, ToolCall
from chatledger.models.json import dumps

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""What the API takes as the name of a participant."""


def fit(message: ChatMessage, place: int, answered: Answered | None, log: LossLog) -> ChatMessage | None:
    """The message with nothing that cannot be said; None for one that no model sees."""
    if message.role == "custom":
        log.add(losses.CUSTOM, "")
        return None
    role = _fit_role(message, log)
    calls = _fit_calls(message, place, log)
    fields: dict[str, object] = {"role": role, "tool_calls": calls, "content": _fit_content(message, role, calls, log)}
    fields |= _fit_result(message, place, answered, log) if role == "tool" else _fit_speaker(message, log)
    note_fields(message, log)
    note_reasoning(message, log)
    if message.format is not None and message.residual is not None:
        log.add(losses.RESIDUAL, "residual")
    return ChatMessage.model_validate(fields, context=LENIENT)


def _fit_role(message: ChatMessage, log: LossLog) -> str:
    if message.role in ROLES and message.role != "function":
        return message.role
    log.add(losses.ROLE, "role")
    return "user"


def _fit_speaker(message: ChatMessage, log: LossLog) -> dict[str, object]:
    log.add_fields(message, "tool_call_id")
    if message.name is None or _NAME.fullmatch(message.name):
        return {"name": message.name}
    log.add(losses.FIELD, "name")
    return {}


def _fit_result(message: ChatMessage, place: int, answered: Answered | None, log: LossLog) -> dict[str, object]:
    """A result names its call by the id alone, so a name that differs from the call's is lost."""
    if message.name is not None and (answered is None or message.name != answered.name):
        log.add(losses.FIELD, "name")
    if answered is not None and answered.legacy:
        return {"role": "function", "name": answered.name}
    call_id = message.tool_call_id
    if call_id is None:
        call_id = made_id(message, place) if answered is None else answered.id
        if call_id is not None:
            log.add(losses.CALL_ID, "tool_call_id")
    return {"tool_call_id": call_id}


def _fit_calls(message: ChatMessage, place: int, log: LossLog) -> list[ToolCall] | None:
    """The calls of an assistant. Those of another role, and a list without any, have no place."""
    if message.role != "assistant" or not message.tool_calls:
        log.add_fields(message, "tool_calls")
        return None
    return [
        _fit_call(call, made_id(message, place, idx), f"tool_calls[{idx}]", log)
        for idx, call in enumerate(message.tool_calls)
    ]


def _fit_call(call: ToolCall, made: str, path: str, log: LossLog) -> ToolCall:
    if call.id is None:
        log.add(losses.CALL_ID, f"{path}.id")
    if not isinstance(call.arguments, str):
        log.add(losses.ARGUMENTS_FORM, f"{path}.arguments")
    if call.extras:
        log.add(losses.FIELD, f"{path}.extras")
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments or {})
    return ToolCall(id=made if call.id is None else call.id, name=call.name, arguments=arguments)


def _fit_content(
    message: ChatMessage, role: str, calls: list[ToolCall] | None, log: LossLog
) -> str | list[Part] | None:
    """Content that is not empty of parts; null stands only beside calls."""
    if isinstance(message.content, str):
        return message.content
    nothing = None if calls else ""
    if not message.content:
        if message.content is not None or not calls:
            log.add(losses.CONTENT_FORM, "content")
        return nothing
    parts = (
        fit_part(part, role=role, source_format=message.format, path=f"content[{idx}]", log=log)
        for idx, part in enumerate(message.content)
    )
    return [part for part in parts if part is not None] or nothing


def note_fields(message: ChatMessage, log: LossLog) -> None:
    log.add_fields(message, "is_error", "response_metadata", "custom_data")


def note_reasoning(message: ChatMessage, log: LossLog) -> None:
    if message.reasoning is None:
        return
    log.add(losses.REASONING, "reasoning")
    for idx, part in enumerate(message.reasoning if isinstance(message.reasoning, list) else ()):
        if isinstance(part, ThinkPart) and part.signature is not None:
            log.add(losses.SIGNATURE, f"reasoning[{idx}].signature")
