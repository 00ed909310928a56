"""A payload as messages: a message is one row, and one of role tool is one row for each of its contents.

Those rows are a group: all but the first say that they continue the one before, and the first holds the head of the
message. A result is a row of role tool, so that each is paired with its call; anything else in that message, such as a
request for approval, is a custom row.

The framework's ids of messages are not the ledger's: results have none, and a message that was changed keeps its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats.agent_framework.objects import Signers, dumped, is_object
from chatledger.formats.agent_framework.parts import (
    ANSWER,
    AS_JSON,
    AUTHOR,
    CALL,
    CALLS,
    CALLS_AT,
    CONTENTS,
    HEAD,
    NAME,
    PARTS,
    RESULT,
    ROLES,
    TYPE,
    Source,
    head_of,
    read_part,
    read_parts,
)
from chatledger.formats.agent_framework.write import encoded_call, encoded_result
from chatledger.formats.wire.fields import call_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import text_alone
from chatledger.formats.wire.plain import as_json
from chatledger.formats.wire.residual import keep, nested, positions_of
from chatledger.models import CONTINUES, ChatMessage, Loss, Part, ToolCall
from chatledger.models.json import JsonValue, dumps

_NAMES = re.compile(r"\.(type|role|author_name|message_id)|\.contents\[\d+\]\.(type|call_id|name|id|file_id)")
"""The paths of ids and names in a message."""


def read_payload(payload: object, *, lenient: bool) -> tuple[list[ChatMessage], list[Loss]]:
    """The rows of a list of messages, and a loss for each value that lenient rules kept as the nearest JSON.

    Raises DecodeError with the path of the first invalid value.
    """
    if not isinstance(payload, (list, tuple)):
        raise wrong("$", "a list of messages", payload)
    rows: list[ChatMessage] = []
    losses: list[Loss] = []
    for index, value in enumerate(payload):
        path = f"$[{index}]"
        source, signers = dumped(value, path) if is_object(value) else (value, {})
        if not isinstance(source, dict):
            raise DecodeError(path, f"expected a message or its dict, not {type(value).__name__}")
        source = as_json(source, path, _NAMES, losses, lenient=lenient)
        rows += read_message(source, path, signers, lenient=lenient)
    return rows, losses


def read_message(source: Source, path: str, signers: Signers | None = None, *, lenient: bool) -> list[ChatMessage]:
    """The rows of a message, at least one. `signers` has the signers of thoughts, as far as an object named them."""
    role, contents = text_at(source, "role", path), source.get(CONTENTS)
    if not isinstance(contents, list):
        raise wrong(f"{path}.{CONTENTS}", "a list", contents)
    author = source.get(AUTHOR) if lenient else optional_text_at(source, AUTHOR, path)
    if role == "tool" and any(_is_of(content, RESULT) for content in contents):
        return _read_group(source, contents, f"{path}.{CONTENTS}", lenient=lenient)
    fields: Source = {
        "role": role if role in ROLES else "custom",
        "name": author if isinstance(author, str) else None,
        **_read_contents(role, contents, f"{path}.{CONTENTS}", signers or {}, lenient=lenient),
    }
    head = keep(source, head_of(fields["role"], contents, fields["name"]))
    return [_row(fields, {} if head is None else {HEAD: head})]


def _row(fields: Source, residual: Source) -> ChatMessage:
    merged = {**residual, **fields.pop("residual", {})}
    return ChatMessage.model_validate({**fields, "format": NAME, "residual": merged or None})


def _is_of(content: JsonValue, kind: str) -> bool:
    return bool(nested(content, TYPE) == kind)


def _is_id(value: JsonValue) -> bool:
    """Whether a call can have this id. Lenient rules keep a list or an object there."""
    return value is None or isinstance(value, str)


# --- Contents ---------------------------------------------------------------------------------------------------------


def _read_contents(
    role: str, values: Sequence[JsonValue], path: str, signers: Signers, *, lenient: bool
) -> dict[str, JsonValue]:
    """The fields of a row: its content, its calls and their residual."""
    answered = {id_ for value in values if _is_of(value, RESULT) and _is_id(id_ := nested(value, "call_id"))}
    calls: dict[int, ToolCall] = {}
    of_calls: Source = {}
    others: dict[int, JsonValue] = {}
    for at, value in enumerate(values):
        call = _read_call(value, f"{path}[{at}]", lenient=lenient) if role == "assistant" else None
        if call is None or call.id in answered:
            others[at] = value
        else:
            call_residual = keep(value, encoded_call(call, ""))
            of_calls |= {} if call_residual is None else {str(len(calls)): call_residual}
            calls[at] = call
    parts, of_parts = read_parts(list(others.values()), path, list(others), signers, lenient=lenient)
    positions = positions_of(list(calls), len(values)) if calls else None
    sections = {PARTS: of_parts, CALLS: of_calls, CALLS_AT: positions}
    return {
        "content": text_alone(parts),
        "tool_calls": list(calls.values()) or None,
        "residual": {key: value for key, value in sections.items() if value},
    }


def _read_call(value: JsonValue, path: str, *, lenient: bool) -> ToolCall | None:
    """A call that the application answers; None for every other content, and for a malformed call if lenient."""
    if not isinstance(value, dict) or not _is_of(value, CALL) or value.get("hosted") is True:
        return None
    return call_at(value, path, id_key="call_id", name_key="name", arguments_key="arguments", lenient=lenient)


# --- Results ----------------------------------------------------------------------------------------------------------


def _read_group(source: Source, contents: list[JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    """The rows of a message of results, one for each content."""
    rows: list[ChatMessage] = []
    for at, value in enumerate(contents):
        fields = _read_result(value, f"{path}[{at}]", lenient=lenient)
        if fields is None:
            fields = {"role": "custom", **_read_other(value, f"{path}[{at}]", lenient=lenient)}
        residual: Source = {CONTINUES: True} if rows else {}
        if not rows and (head := keep(source, head_of(fields["role"], contents, None))) is not None:
            residual[HEAD] = head
        rows.append(_row(fields, residual))
    return rows


def _read_other(value: JsonValue, path: str, *, lenient: bool) -> Source:
    part, residual = read_part(value, path, lenient=lenient)
    return {"content": text_alone([part]), "residual": {} if residual is None else {PARTS: {"0": residual}}}


def _read_result(value: JsonValue, path: str, *, lenient: bool) -> Source | None:
    """The fields of a result; None for every other content, and for a malformed result if lenient."""
    if not isinstance(value, dict) or not _is_of(value, RESULT):
        return None
    try:
        call_id = optional_text_at(value, "call_id", path)
        content, of_parts, section = _read_answer(value, path, lenient=lenient)
    except DecodeError:
        if not lenient:
            raise
        return None
    fields: Source = {
        "role": "tool",
        "content": content,
        "tool_call_id": call_id,
        "is_error": None if value.get("exception") is None else True,
    }
    residual: Source = {PARTS: of_parts} if of_parts else {}
    row = _row({**fields, "residual": residual}, {})
    section = {**section, **(keep(value, encoded_result(row, section, call_id or "")) or {})}
    return {**fields, "residual": {**residual, **({ANSWER: section} if section else {})}}


def _read_answer(value: Source, path: str, *, lenient: bool) -> tuple[str | list[Part] | None, Source, Source]:
    """The content of a result, the residuals of its items, and the beginning of its section.

    The framework writes a result twice: as items, and as the joined text of its text items.
    """
    result, items = value.get("result"), value.get("items")
    if isinstance(items, list):
        parts, of_parts = read_parts(items, f"{path}.items", range(len(items)), {}, lenient=lenient)
        text = text_alone(parts)
        if not isinstance(text, str) or text == result:
            return text if isinstance(text, str) else parts, of_parts, {}
        if isinstance(result, str) or result is None:
            return parts, of_parts, {}
    elif items is not None:
        raise wrong(f"{path}.items", "a list", items)
    if result is None or isinstance(result, str):
        return result, {}, {}
    return dumps(result), {}, {AS_JSON: True}
