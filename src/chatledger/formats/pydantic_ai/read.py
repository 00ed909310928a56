"""A payload as messages: a response is one row, and each part of a request is one row.

The rows of a request are a group: all but the first are marked as continuing the row before, and the first holds the
head of the request. Instructions of a request are in its head, since the framework writes them into each new request.

The framework's run is not read: each copy of a conversation has the same run, but a run belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chatledger.errors import DecodeError
from chatledger.formats.pydantic_ai.names import (
    AS_JSON,
    CALL,
    CALLS,
    CALLS_AT,
    DIGESTS,
    EMPTY,
    FEEDBACK,
    HEAD,
    KIND,
    NAME,
    PART,
    PART_KIND,
    PARTS,
    REQUEST,
    RESPONSE,
    RETRY,
    RETURN,
    SINGLE,
    SYSTEM,
    USER,
    WHOLE,
    Source,
    metadata_of,
    request_head,
    response_head,
    with_given,
)
from chatledger.formats.pydantic_ai.parts import has_files, read_items, read_part
from chatledger.formats.pydantic_ai.write import SUCCESS, encoded_call, encoded_row
from chatledger.formats.wire.fields import as_object, call_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import opaque, text_alone
from chatledger.formats.wire.plain import require_json
from chatledger.formats.wire.residual import keep, positions_of
from chatledger.models import CONTINUES, ChatMessage, Part, ToolCall
from chatledger.models.json import JsonValue, dumps


def read_payload(sources: Sequence[JsonValue], *, lenient: bool) -> list[ChatMessage]:
    """The rows of plain messages. Raises DecodeError with the path of the first invalid value."""
    rows: list[ChatMessage] = []
    for index, source in enumerate(sources):
        path = f"$[{index}]"
        require_json(source, path)
        rows += read_message(as_object(source, path), path, lenient=lenient)
    return rows


def read_message(source: Source, path: str, *, lenient: bool) -> list[ChatMessage]:
    """The rows of a message, at least one."""
    kind, parts = source.get("kind"), source.get("parts")
    if kind in (REQUEST, RESPONSE) and isinstance(parts, list):
        reader = _read_request if kind == REQUEST else _read_response
        return reader(source, parts, path, lenient=lenient)
    if lenient:
        return [ChatMessage(role="custom", content=[opaque(source, "kind")], format=NAME, residual={WHOLE: True})]
    text_at(source, "kind", path)
    if kind not in (REQUEST, RESPONSE):
        raise DecodeError(f"{path}.kind", f"expected {REQUEST!r} or {RESPONSE!r}")
    raise wrong(f"{path}.parts", "a list", parts) if "parts" in source else DecodeError(f"{path}.parts", "missing")


# --- Requests ---------------------------------------------------------------------------------------------------------


def _read_request(source: Source, parts: list[JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    head = keep(source, request_head(parts))
    first: Source = {} if head is None else {HEAD: head}
    if not parts:
        return [ChatMessage(role="custom", format=NAME, residual={**first, EMPTY: True})]
    return [
        read_row(part, first if index == 0 else {CONTINUES: True}, f"{path}.parts[{index}]", lenient=lenient)
        for index, part in enumerate(parts)
    ]


def read_row(value: JsonValue, residual: Source, path: str, *, lenient: bool) -> ChatMessage:
    """The row of a part of a request; `residual` is the beginning of its residual."""
    try:
        part = as_object(value, path)
        reader = _READERS.get(text_at(part, PART_KIND, path))
        if reader is not None:
            return reader(part, residual, path, lenient)
    except DecodeError:
        if not lenient:
            raise
    return ChatMessage(role="custom", content=[opaque(value, PART_KIND)], format=NAME, residual=residual or None)


def _read_system(part: Source, residual: Source, path: str, lenient: bool) -> ChatMessage:
    return _row(part, residual, {}, role="system", content=text_at(part, "content", path))


def _read_user(part: Source, residual: Source, path: str, lenient: bool) -> ChatMessage:
    content = part.get("content")
    if not isinstance(content, list):
        return _row(part, residual, {}, role="user", content=text_at(part, "content", path))
    parts, residuals = read_items(content, f"{path}.content", lenient=lenient)
    return _row(part, _with_items(residual, residuals), {}, role="user", content=parts)


def _read_return(part: Source, residual: Source, path: str, lenient: bool) -> ChatMessage:
    outcome = part.get("outcome", SUCCESS)
    if not isinstance(outcome, str):
        raise wrong(f"{path}.outcome", "text", outcome)
    fields = {
        "role": "tool",
        "name": text_at(part, "tool_name", path),
        "tool_call_id": optional_text_at(part, "tool_call_id", path),
        "is_error": None if outcome == SUCCESS else True,
    }
    if "content" not in part:
        raise DecodeError(f"{path}.content", "missing")
    content, digests = part["content"], part.get(DIGESTS)
    items = content if isinstance(content, list) else [content]
    if has_files(items, digests):
        parts, residuals = read_items(items, f"{path}.content", lenient=lenient)
        section = {} if isinstance(content, list) else {SINGLE: True}
        return _row(part, _with_items(residual, residuals), section, content=parts, **fields)
    text, section = _text_of(content)
    return _row(part, residual, section, content=text, **fields)


def _read_retry(part: Source, residual: Source, path: str, lenient: bool) -> ChatMessage:
    """A retry of older releases: the failed result of a tool, or feedback if it names no tool."""
    if "content" not in part:
        raise DecodeError(f"{path}.content", "missing")
    text, section = _text_of(part["content"])
    name, section = optional_text_at(part, "tool_name", path), {KIND: RETRY, **section}
    if name is None:
        return _row(part, residual, section, role="user", content=text)
    call_id = optional_text_at(part, "tool_call_id", path)
    return _row(part, residual, section, role="tool", content=text, name=name, tool_call_id=call_id, is_error=True)


def _read_feedback(part: Source, residual: Source, path: str, lenient: bool) -> ChatMessage:
    if "content" not in part:
        raise DecodeError(f"{path}.content", "missing")
    text, section = _text_of(part["content"])
    return _row(part, residual, {KIND: FEEDBACK, **section}, role="user", content=text)


_READERS: dict[str, Callable[[Source, Source, str, bool], ChatMessage]] = {
    SYSTEM: _read_system,
    USER: _read_user,
    RETURN: _read_return,
    RETRY: _read_retry,
    FEEDBACK: _read_feedback,
}


def _text_of(content: JsonValue) -> tuple[str | None, Source]:
    """Any JSON as text, and its section of the residual."""
    if content is None or isinstance(content, str):
        return content, {}
    return dumps(content), {AS_JSON: True}


def _with_items(residual: Source, residuals: Source) -> Source:
    return {**residual, PARTS: residuals} if residuals else residual


def _row(part: Source, residual: Source, section: Source, **fields: object) -> ChatMessage:
    """The row, with a residual for the values of the part that typed fields cannot hold."""
    section = {**section, **with_given(part, "timestamp")}
    row = ChatMessage.model_validate({**fields, "format": NAME, "residual": residual or None})
    section = {**section, **(keep(part, encoded_row(row, section, 0, None)) or {})}
    return row.model_copy(update={"residual": {**residual, PART: section}}) if section else row


# --- Responses --------------------------------------------------------------------------------------------------------


def _read_response(source: Source, values: list[JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    calls: dict[int, ToolCall] = {}
    parts: list[Part] = []
    of_parts: Source = {}
    of_calls: Source = {}
    for at, value in enumerate(values):
        at_path = f"{path}.parts[{at}]"
        call = _read_call(value, at_path, lenient=lenient)
        if call is not None:
            of_calls |= _indexed(len(calls), keep(value, encoded_call(call, "")))
            calls[at] = call
            continue
        part, residual = read_part(value, at_path, lenient=lenient)
        of_parts |= _indexed(len(parts), residual)
        parts.append(part)
    metadata = metadata_of(source)
    head = with_given(source, "timestamp")
    head = {**head, **(keep(source, response_head(head, values, metadata or {})) or {})}
    positions = positions_of(list(calls), len(values)) if calls else None
    sections = {HEAD: head, PARTS: of_parts, CALLS: of_calls, CALLS_AT: positions}
    row = ChatMessage(
        role="assistant",
        content=text_alone(parts),
        tool_calls=list(calls.values()) or None,
        response_metadata=metadata,
        format=NAME,
        residual={key: value for key, value in sections.items() if value} or None,
    )
    return [row]


def _indexed(index: int, residual: JsonValue) -> Source:
    return {str(index): residual} if residual else {}


def _read_call(value: JsonValue, path: str, *, lenient: bool) -> ToolCall | None:
    """A call; None for every other part, and for a malformed call if lenient."""
    if not isinstance(value, dict) or value.get(PART_KIND) != CALL:
        return None
    return call_at(value, path, id_key="tool_call_id", name_key="tool_name", arguments_key="args", lenient=lenient)
