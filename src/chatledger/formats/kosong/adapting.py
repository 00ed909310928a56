"""Messages of any origin as messages that kosong can say, by their canonical fields alone, with what is lost.

One turn of an assistant is one kosong message: where another format wrote reasoning, text and each call as a message of
its own, those of one run and name are merged. A message of the very revision passes as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.kosong.adapting_parts import adapt_part, adapt_reasoning
from chatledger.formats.kosong.linking import Links
from chatledger.formats.kosong.losses import CALL_ID, CONTENT_FORM, CUSTOM, FIELD, MERGED, RESIDUAL, ROLE, LossLog
from chatledger.formats.kosong.revision import PARTIAL, ROLES, Revision, of_family, residual_of
from chatledger.models import ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import dumps

Content = str | list[Part] | None


def adapt(
    messages: Sequence[ChatMessage], revision: Revision, log: LossLog, *, records: bool = False
) -> list[ChatMessage]:
    """The messages to write, in order; those of the revision itself unchanged, as are `records` if they are wanted."""
    links = Links()
    adapted: list[ChatMessage] = []
    before: ChatMessage | None = None
    for place, message in enumerate(messages, start=1):
        log.seq = message.seq
        as_record = records and is_record(message)
        one = message if as_record else adapt_message(message, revision, links, place, log)
        if one is None:
            continue
        if before is not None and _is_one_turn(before, message):
            log.add(MERGED, "$")
            adapted[-1] = _merged(adapted[-1], one)
        else:
            adapted.append(one)
        before = message
    return adapted


def adapt_message(
    message: ChatMessage, revision: Revision, links: Links, place: int, log: LossLog
) -> ChatMessage | None:
    """One message; None for one that is only for the screen."""
    ids = links.ask(message, message.seq or place)
    answered = links.answer(message) if message.role == "tool" else message.tool_call_id
    if is_record(message):
        log.add(CUSTOM, "$")
        return None
    if message.format == revision.name:
        return message
    role = _role(message, log)
    if role is None:
        return None
    if answered != message.tool_call_id:
        log.add(CALL_ID, "tool_call_id")
    _note_fields(message, role, log)
    changes = {
        "role": role,
        "content": _content(message, revision, log),
        "reasoning": None,
        "tool_calls": _calls(message, ids, revision, log),
        "tool_call_id": answered,
        "format": revision.name,
        "residual": _kept_residual(message, log),
    }
    return message.model_copy(update=changes)


def is_record(message: ChatMessage) -> bool:
    """Whether it is a control record of a context file, which is no message to a model."""
    return message.role == "custom" and of_family(message) and message.custom_data is not None


def _role(message: ChatMessage, log: LossLog) -> str | None:
    if message.role in ROLES:
        return message.role
    if message.role == "custom":  # the agent service, which has no system messages, keeps them so
        held = (message.custom_data or {}).get("role")
        if held in ROLES:
            return str(held)
        log.add(CUSTOM, "$")
        return None
    log.add(ROLE, "role")
    return "system" if message.role == "developer" else "user"


def _note_fields(message: ChatMessage, role: str, log: LossLog) -> None:
    log.add_fields(message, "", "is_error", "run_id", "response_metadata")
    if message.custom_data is not None and not (message.role == "custom" and message.custom_data == {"role": role}):
        log.add(FIELD, "custom_data")
    if message.state != "complete":
        log.add(FIELD, "state")


def _kept_residual(message: ChatMessage, log: LossLog) -> dict[str, bool] | None:
    """Both revisions have the flag `partial`; all else in a residual is understood by its own format only."""
    partial = residual_of(message).get(PARTIAL)
    kept = None if partial is None else {PARTIAL: partial}
    if message.residual != kept:
        log.add(RESIDUAL, "residual")
    return kept


def _content(message: ChatMessage, revision: Revision, log: LossLog) -> Content:
    own = of_family(message)
    reasoning = adapt_reasoning(message.reasoning, revision, log)
    content = message.content
    if isinstance(content, list):
        adapted: list[Part] = []
        for index, part in enumerate(content):
            adapted += adapt_part(part, f"content[{index}]", revision, log, own=own)
        content = adapted
    if message.reasoning is not None:
        return reasoning + _as_parts(content)
    if _changes_form(message.content, revision):
        log.add(CONTENT_FORM, "content")
    return content


def _changes_form(content: Content, revision: Revision) -> bool:
    """Whether this content reads back as another one: the older dump has one word for all that is empty, the newer
    one has none for null and takes one text in a list for the text."""
    if revision.null_is_empty:
        return content is None or content == []
    return content is None or (isinstance(content, list) and len(content) == 1 and isinstance(content[0], TextPart))


def _as_parts(content: Content) -> list[Part]:
    if isinstance(content, list):
        return content
    return [TextPart(text=content)] if content else []


def _calls(message: ChatMessage, ids: list[str], revision: Revision, log: LossLog) -> list[ToolCall] | None:
    if message.tool_calls is None:
        return None
    return [
        _call(call, id_, f"tool_calls[{index}]", revision, log)
        for index, (call, id_) in enumerate(zip(message.tool_calls, ids, strict=True))
    ]


def _call(call: ToolCall, id_: str, path: str, revision: Revision, log: LossLog) -> ToolCall:
    if call.id is None:
        log.add(CALL_ID, f"{path}.id")
    if call.extras is not None and not revision.has_extras:
        log.add(FIELD, f"{path}.extras")
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
