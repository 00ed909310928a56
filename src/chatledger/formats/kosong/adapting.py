"""Messages of any origin as messages that kosong can say, by their canonical fields alone.

One turn of an assistant is one kosong message: where another format wrote reasoning, text and each call as a message of
its own, those of one run and name are merged. A message of the very revision passes as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.kosong.adapting_parts import adapt_part, adapt_reasoning, is_part_as_read
from chatledger.formats.kosong.revision import PARTIAL, ROLES, Revision, of_family, residual_of
from chatledger.formats.wire.pairing import Pairing
from chatledger.models import ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import dumps

Content = str | list[Part] | None


def adapt(
    messages: Sequence[ChatMessage], revision: Revision, *, records: bool = False
) -> list[tuple[ChatMessage, tuple[int, ...]]]:
    """The messages to write, in order, each with the indexes of those that it is made of; those of the revision itself
    unchanged, as are `records` if they are wanted."""
    pairing = Pairing()
    adapted: list[tuple[ChatMessage, tuple[int, ...]]] = []
    before: ChatMessage | None = None
    for index, message in enumerate(messages):
        as_record = records and is_record(message)
        one = message if as_record else adapt_message(message, revision, pairing, index + 1)
        if one is None:
            continue
        if before is not None and _is_one_turn(before, message):
            first, origins = adapted.pop()
            adapted.append((_merged(first, one), (*origins, index)))
        else:
            adapted.append((one, (index,)))
        before = message
    return adapted


def adapt_message(message: ChatMessage, revision: Revision, pairing: Pairing, place: int) -> ChatMessage | None:
    """One message; None for one that is only for the screen."""
    ids = pairing.ask(message, place)
    answered = pairing.answer(message) if message.role == "tool" else None
    if is_record(message):
        return None
    if message.format == revision.name:
        return message
    role = _role(message)
    if role is None:
        return None
    changes = {
        "role": role,
        "content": _content(message, revision),
        "reasoning": None,
        "tool_calls": _calls(message, ids),
        "tool_call_id": message.tool_call_id if answered is None else answered.id,
        "format": revision.name,
        "residual": _kept_residual(message),
    }
    return message.model_copy(update=changes)


def is_record(message: ChatMessage) -> bool:
    """Whether it is a control record of a context file, which is no message to a model."""
    return message.role == "custom" and of_family(message) and message.custom_data is not None


def is_as_read(message: ChatMessage, revision: Revision) -> bool:
    """Whether it is of the revision, as it was read, with nothing in it that a program put there and that nobody reads
    back."""
    if message.format != revision.name or is_record(message) or message.reasoning is not None:
        return False
    parts = message.content if isinstance(message.content, list) else ()
    calls = message.tool_calls or ()
    extras = revision.has_extras or all(call.extras is None for call in calls)
    return extras and all(is_part_as_read(part, revision) for part in parts)


def _role(message: ChatMessage) -> str | None:
    if message.role in ROLES:
        return message.role
    if message.role == "custom":  # the agent service, which has no system messages, keeps them so
        held = (message.custom_data or {}).get("role")
        if isinstance(held, str) and held in ROLES:
            return held
        return None
    return "system" if message.role == "developer" else "user"


def _kept_residual(message: ChatMessage) -> dict[str, bool] | None:
    """Both revisions have the flag `partial`; all else in a residual is understood by its own format only."""
    partial = residual_of(message).get(PARTIAL)
    return None if partial is None else {PARTIAL: partial}


def _content(message: ChatMessage, revision: Revision) -> Content:
    own = of_family(message)
    content = message.content
    if isinstance(content, list):
        content = [adapted for part in content for adapted in adapt_part(part, revision, own=own)]
    if message.reasoning is None:
        return content
    return adapt_reasoning(message.reasoning, revision) + _as_parts(content)


def _as_parts(content: Content) -> list[Part]:
    if isinstance(content, list):
        return content
    return [TextPart(text=content)] if content else []


def _calls(message: ChatMessage, ids: list[str]) -> list[ToolCall] | None:
    if message.tool_calls is None:
        return None
    return [_call(call, id_) for call, id_ in zip(message.tool_calls, ids, strict=True)]


def _call(call: ToolCall, id_: str) -> ToolCall:
    arguments = dumps(call.arguments) if isinstance(call.arguments, dict) else call.arguments
    return ToolCall.model_construct(id=id_, name=call.name, arguments=arguments, extras=call.extras)


def _is_one_turn(before: ChatMessage, message: ChatMessage) -> bool:
    return (
        before.role == message.role == "assistant"
        and not of_family(before)
        and not of_family(message)
        and (before.run_id, before.name, before.state) == (message.run_id, message.name, message.state)
    )


def _merged(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    parts = _as_parts(first.content) + _as_parts(second.content)
    is_text = len(parts) == 1 and isinstance(parts[0], TextPart)
    calls = [*(first.tool_calls or ()), *(second.tool_calls or ())]
    changes = {
        "content": parts[0].text if is_text and isinstance(parts[0], TextPart) else parts or "",
        "tool_calls": None if first.tool_calls is second.tool_calls is None else calls,
    }
    return first.model_copy(update=changes)
