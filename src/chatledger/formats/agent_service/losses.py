"""What a message says that a row of this format cannot: the codes and paths of a conversion's report.

    role            system, developer or unknown: written as custom, with the role in custom_data
    content_null    no content, written as ""
    content_form    content of parts: their texts are joined by nothing
    think, media, opaque    a part that is not text
    extras          what its source kept beside a part or a call
    reasoning, name, is_error, state    fields that this format does not have
    arguments_null  no arguments, written as {}
    arguments_form  the spelling of arguments that are a JSON object as text
    arguments_raw   arguments that are no JSON object, written as {"_raw": text}
    empty           an empty list or object: here it is the default, and the same as none
    custom_data     a "role" in custom_data that the message's own role replaces
    residual        what only the message's own format understands

A message without losses reads back as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatledger.formats.agent_service.words import NAME, ROLE, TYPE_OF_ROLE
from chatledger.formats.agent_service.writing import parse_object
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Loss, MediaPart, OpaquePart, Part, TextPart, ThinkPart, ToolCall


def losses_of(message: LedgerMessage) -> list[Loss]:
    """The losses of one message. One of this format has its residual, so only its state can be lost."""
    found = _lost_state(message) if message.format == NAME else _all_lost(message)
    return [Loss(code, message.seq, path) for code, path in found]


def _all_lost(message: LedgerMessage) -> Iterator[tuple[str, str]]:
    yield from _lost_role(message)
    yield from _lost_content(message)
    for name in ("reasoning", "name", "is_error"):
        if getattr(message, name) is not None:
            yield name, name
    yield from _lost_state(message)
    for idx, call in enumerate(message.tool_calls or ()):
        yield from _lost_of_call(call, f"tool_calls[{idx}]")
    for name in ("tool_calls", "response_metadata", "custom_data"):
        if getattr(message, name) in ([], {}):
            yield "empty", name
    if message.residual is not None:
        yield "residual", "residual"


def _lost_role(message: LedgerMessage) -> Iterator[tuple[str, str]]:
    if message.role not in TYPE_OF_ROLE:
        yield "role", "role"
        if ROLE in (message.custom_data or {}):
            yield "custom_data", f"custom_data.{ROLE}"


def _lost_content(message: LedgerMessage) -> Iterator[tuple[str, str]]:
    if message.content is None:
        yield "content_null", "content"
    elif not isinstance(message.content, str):
        yield "content_form", "content"
        for idx, part in enumerate(message.content):
            yield from _lost_of_part(part, f"content[{idx}]")


def _lost_of_part(part: Part, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, ThinkPart):
        yield "think", path
    elif isinstance(part, MediaPart):
        yield "media", path
    elif isinstance(part, OpaquePart):
        yield "opaque", path
    elif isinstance(part, TextPart) and part.extras is not None:
        yield "extras", f"{path}.extras"


def _lost_of_call(call: ToolCall, path: str) -> Iterator[tuple[str, str]]:
    if call.arguments is None:
        yield "arguments_null", f"{path}.arguments"
    elif isinstance(call.arguments, str):
        parsed = parse_object(call.arguments)
        yield "arguments_form" if parsed is not None else "arguments_raw", f"{path}.arguments"
    if call.extras is not None:
        yield "extras", f"{path}.extras"


def _lost_state(message: LedgerMessage) -> Iterator[tuple[str, str]]:
    if message.state != "complete":
        yield "state", "state"
