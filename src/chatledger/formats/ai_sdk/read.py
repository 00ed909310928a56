"""A payload as messages. A UI message of the system or the user is one row. One of the assistant has a row for each
step, and after it a row for each result of a tool; all but the first continue the row before.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats.ai_sdk.names import (
    CALL,
    CALLS,
    CALLS_AT,
    DYNAMIC,
    HEAD,
    ID,
    NAME,
    PART,
    PARTS,
    ROLES,
    STEP,
    STEP_START,
    WHOLE,
    Source,
)
from chatledger.formats.ai_sdk.parts import read_part
from chatledger.formats.ai_sdk.tools import ToolPart, read_tool
from chatledger.formats.ai_sdk.write import write_head
from chatledger.formats.wire.fields import as_object, text_at, unknown_role, wrong
from chatledger.formats.wire.parts import opaque, text_alone
from chatledger.formats.wire.plain import require_json
from chatledger.formats.wire.residual import keep, positions_of
from chatledger.models import CONTINUES, ChatMessage, Part
from chatledger.models.json import JsonValue


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The rows of UI messages. Raises DecodeError with the path of the first invalid value."""
    if not isinstance(payload, (list, tuple)):
        raise DecodeError("$", f"expected a list of UI messages, not {type(payload).__name__}")
    rows: list[ChatMessage] = []
    for index, source in enumerate(payload):
        path = f"$[{index}]"
        require_json(source, path)
        rows += read_message(as_object(source, path), path, lenient=lenient)
    return rows


def read_message(source: Source, path: str, *, lenient: bool) -> list[ChatMessage]:
    """The rows of a UI message, at least one."""
    role, parts = source.get("role"), source.get("parts")
    if not isinstance(role, str) or role not in ROLES or not isinstance(parts, list):
        if lenient:
            return [ChatMessage(role="custom", content=[opaque(source, "role")], format=NAME, residual={WHOLE: True})]
        text_at(source, "role", path)
        if role not in ROLES:
            raise unknown_role(str(role), path, ROLES)
        raise wrong(f"{path}.parts", "a list", parts) if "parts" in source else DecodeError(f"{path}.parts", "missing")
    if role == "assistant":
        rows = _read_answer(parts, f"{path}.parts", lenient=lenient)
    else:
        rows = [_read_row(role, list(enumerate(parts)), 0, f"{path}.parts", {}, lenient=lenient)]
    return [_with_head(rows[0], source), *rows[1:]]


def _with_head(row: ChatMessage, source: Source) -> ChatMessage:
    """The first row, with what the UI message has around its parts."""
    metadata, id_ = source.get("metadata"), source.get("id")
    residual: Source = {ID: id_} if isinstance(id_, str) else {}
    fields = {"custom_data": metadata if isinstance(metadata, dict) else None, "residual": residual}
    head = keep(source, {**write_head(row.model_copy(update=fields), 0), "parts": source["parts"]})
    residual |= {HEAD: head} if head else {}
    residual |= row.residual if isinstance(row.residual, dict) else {}
    return row.model_copy(update={**fields, "residual": residual or None})


def _read_answer(values: Sequence[JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    starts = [at for at, value in enumerate(values) if isinstance(value, dict) and value.get("type") == STEP_START]
    begins = starts if starts[:1] == [0] else [0, *starts]
    rows: list[ChatMessage] = []
    for begin, end in zip(begins, [*begins[1:], len(values)], strict=True):
        residual: Source = {CONTINUES: True} if rows else {}
        first, start = begin, values[begin] if begin in starts else None
        if isinstance(start, dict):
            first = begin + 1
            residual |= {STEP: changed} if (changed := keep(start, {"type": STEP_START})) else {}
        else:
            residual |= {STEP: False}
        rows += _read_step(values[first:end], first, path, residual, lenient=lenient)
    return rows


def _read_step(
    values: Sequence[JsonValue], first: int, path: str, residual: Source, *, lenient: bool
) -> list[ChatMessage]:
    """The row of a step, and the rows of the results in it. `first` is the position of its first part."""
    tools: dict[int, ToolPart] = {}
    for at, value in enumerate(values):
        tool = read_tool(value, f"{path}[{first + at}]", lenient=lenient)
        if tool is not None:
            tools[at] = tool
    of_calls = {str(index): tool.of_call for index, tool in enumerate(tools.values()) if tool.of_call}
    positions = positions_of(list(tools), len(values)) if tools else None
    residual |= {key: value for key, value in ((CALLS, of_calls), (CALLS_AT, positions)) if value}
    others = [(at, value) for at, value in enumerate(values) if at not in tools]
    row = _read_row("assistant", others, first, path, residual, lenient=lenient)
    calls = [tool.call for tool in tools.values()] or None
    step = row.model_copy(update={"tool_calls": calls})
    return [step, *(_read_result(tool, index) for index, tool in enumerate(tools.values()) if tool.result is not None)]


def _read_result(tool: ToolPart, index: int) -> ChatMessage:
    result = tool.result
    if result is None:
        raise ValueError("a tool part without a result has no row of a result")
    is_dynamic: Source = {DYNAMIC: True} if DYNAMIC in tool.of_call else {}
    section = {**is_dynamic, **result.section}
    return ChatMessage(
        role="tool",
        content=result.content,
        name=tool.call.name,
        tool_call_id=tool.call.id,
        is_error=True if result.is_error else None,
        format=NAME,
        residual={CONTINUES: True, CALL: index, **({PART: section} if section else {})},
    )


def _read_row(
    role: str, values: Sequence[tuple[int, JsonValue]], first: int, path: str, residual: Source, *, lenient: bool
) -> ChatMessage:
    """A row of the parts at these positions after `first`."""
    parts: list[Part] = []
    of_parts: Source = {}
    for at, value in values:
        part, section = read_part(value, f"{path}[{first + at}]", of_assistant=role == "assistant", lenient=lenient)
        of_parts |= {str(len(parts)): section} if section else {}
        parts.append(part)
    residual |= {PARTS: of_parts} if of_parts else {}
    return ChatMessage(role=role, content=text_alone(parts), format=NAME, residual=residual or None)
