"""Tool parts, both ways. A tool part is a call and, in three of its seven states, also its result.

    input-streaming, input-available        an open call
    approval-requested, approval-responded  an open call; the approval is in the residual
    output-available                        a call and its result
    output-error                            a call and a result that is an error
    output-denied                           a call and a result that is an error; its text is the reason

The residual of the call restores the part without its result, so that a result of any origin can be added to it. The
residual of the result restores the part as it came.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.errors import DecodeError
from chatledger.formats.ai_sdk.names import (
    AS_JSON,
    DENIED,
    DYNAMIC,
    DYNAMIC_TOOL,
    ERROR,
    FINISHED,
    INPUT,
    OPEN,
    OUTPUT,
    REQUESTED,
    RESPONDED,
    TOOL,
    Source,
)
from chatledger.formats.wire.arguments import value_of
from chatledger.formats.wire.fields import nameless, text_at
from chatledger.formats.wire.residual import keep, nested, restore
from chatledger.models import ToolCall
from chatledger.models.json import JsonObject, JsonValue, dumps

_OF_RESULT = ("output", "errorText", "preliminary", "resultProviderMetadata")
"""The keys that a part has only with a result."""


@dataclass(frozen=True, slots=True)
class ToolPart:
    """A tool part as it was read."""

    call: ToolCall
    of_call: Source
    """The residual of the call."""
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: str | None
    is_error: bool
    section: Source
    """The residual of the part with its result."""


def read_tool(value: JsonValue, path: str, *, lenient: bool) -> ToolPart | None:
    """A tool part; None for every other part, for a tool that the provider ran, and for a malformed part if lenient."""
    if not isinstance(value, dict) or not _is_tool(value):
        return None
    try:
        return _read(value, path)
    except DecodeError:
        if not lenient:
            raise
        return None


def write_call(call: ToolCall, id_: str, residual: JsonValue) -> Source:
    """The part of a call without a result."""
    return restore(encoded_call(call, id_, is_dynamic=nested(residual, DYNAMIC) is True), residual)


def write_result(open_part: Source, content: str | None, *, is_error: bool, section: JsonValue) -> Source:
    """The part of a call with its result."""
    as_json = nested(section, AS_JSON) is True
    return restore(_finished(open_part, content, is_error=is_error, as_json=as_json), section)


def encoded_call(call: ToolCall, id_: str, *, is_dynamic: bool) -> Source:
    """The part of an open call before its residual is put back."""
    kind: Source = {"type": DYNAMIC_TOOL, "toolName": call.name} if is_dynamic else {"type": f"{TOOL}{call.name}"}
    return {**kind, "toolCallId": id_, "state": INPUT, "input": {} if call.arguments is None else call.arguments}


def _is_tool(source: Source) -> bool:
    kind = source.get("type")
    is_tool = isinstance(kind, str) and (kind == DYNAMIC_TOOL or kind.startswith(TOOL))
    return is_tool and source.get("providerExecuted") is not True


def _read(source: Source, path: str) -> ToolPart:
    kind, state = text_at(source, "type", path), text_at(source, "state", path)
    is_dynamic = kind == DYNAMIC_TOOL
    name = text_at(source, "toolName", path) if is_dynamic else kind.removeprefix(TOOL)
    if not name:
        raise nameless(f"{path}.{'toolName' if is_dynamic else 'type'}")
    if state not in OPEN and state not in FINISHED:
        raise DecodeError(f"{path}.state", f"unknown state {state[:80]!r}; known states: {', '.join(OPEN + FINISHED)}")
    call = ToolCall(id=text_at(source, "toolCallId", path), name=name, arguments=_arguments(source))
    open_part = source if state in OPEN else _without_result(source)
    known = keep(open_part, encoded_call(call, call.id or "", is_dynamic=is_dynamic)) or {}
    of_call = {DYNAMIC: True, **known} if is_dynamic else known
    return ToolPart(call, of_call, _read_result(source, open_part, state, path) if state in FINISHED else None)


def _arguments(source: Source) -> str | JsonObject | None:
    """The input. Without one, the text that the model wrote in its place; it need not be JSON."""
    value = source.get("input")
    if value is None:
        raw = source.get("rawInput")
        return raw if isinstance(raw, str) else None
    return value if isinstance(value, (str, dict)) else dumps(value)


def _without_result(source: Source) -> Source:
    """The part as it was before its result came."""
    approved = nested(source.get("approval"), "approved")
    asked = REQUESTED if isinstance(source.get("approval"), dict) else INPUT
    state = RESPONDED if isinstance(approved, bool) else asked
    return {key: state if key == "state" else value for key, value in source.items() if key not in _OF_RESULT}


def _read_result(source: Source, open_part: Source, state: str, path: str) -> ToolResult:
    as_json, content = False, None
    if state == ERROR:
        content = text_at(source, "errorText", path)
    elif state == DENIED:
        reason = nested(source.get("approval"), "reason")
        content = reason if isinstance(reason, str) else None
    else:
        output = source.get("output")
        as_json = not isinstance(output, str | None)
        content = dumps(output) if as_json else output
    is_error = state != OUTPUT
    finished = _finished(open_part, content, is_error=is_error, as_json=as_json)
    section = {AS_JSON: True} if as_json else {}
    return ToolResult(content, is_error, {**section, **(keep(source, finished) or {})})


def _finished(open_part: Source, content: str | None, *, is_error: bool, as_json: bool) -> Source:
    """The part with its result. The SDK accepts no output of a refused call, and no approval without an answer."""
    approval = open_part.get("approval")
    if isinstance(approval, dict) and approval.get("approved") is False:
        refusal = {**approval, "reason": content} if content else approval
        return {**open_part, "state": DENIED, "approval": refusal}
    part = dict(open_part)
    if isinstance(approval, dict) and approval.get("approved") is not True:
        # A failed call may have been refused elsewhere, so nothing says that it was approved.
        del part["approval"]
        part |= {} if is_error else {"approval": {**approval, "approved": True}}
    if is_error:
        return {**part, "state": ERROR, "errorText": content or ""}
    return {**part, "state": OUTPUT, "output": value_of(content) if as_json and content is not None else content}
