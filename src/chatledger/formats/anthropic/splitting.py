"""A message of the API as the messages that are stored of it.

A tool result is a message of its own here, and in a user message several may stand, with more beside them. They become
a group: the results in their order, then one user message of the rest, so that no call waits while the user speaks. All
but the first say that they continue the one before, and

    rest_at     where the rest stood in the list, if not after all results
    calls_at    where an assistant's calls stood, if not after all else
    keys, extra of the message itself, as `wire.residual` has it: on the first of the group
    null        how a content was spelled that is none: absent or null

Where the list is one of calls or results and a single text, it can only be a list, and the text is read as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.calls import read_call
from chatledger.formats.anthropic.contents import PARTS, read_parts
from chatledger.formats.anthropic.names import LISTED, NAME, ROLES, TOOL_RESULT, TOOL_USE
from chatledger.formats.anthropic.results import read_result
from chatledger.formats.wire.fields import text_at, wrong
from chatledger.formats.wire.residual import EXTRA, KEYS
from chatledger.models import CONTINUES, LENIENT, ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import JsonValue

REST_AT = "rest_at"
CALLS = "calls"
CALLS_AT = "calls_at"
NULL = "null"

_HOME = {TOOL_USE: "assistant", TOOL_RESULT: "user"}
"""The role in whose messages alone these blocks mean anything."""


def read_message(source: dict[str, JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    """The messages of one, at least one. Raises DecodeError at the path of what is not of the format."""
    role = _read_role(source, path, lenient=lenient)
    content = source.get("content")
    if isinstance(content, list):
        first, *others = _read_blocks(role, content, f"{path}.content", lenient=lenient)
    else:
        first, others = _message(role, *read_plain(source, "content", f"{path}.content", lenient=lenient)), []
    return [_with_envelope(first, source, role, alone=not others), *others]


def read_plain(source: dict[str, JsonValue], key: str, path: str, *, lenient: bool) -> tuple[str | None, Any]:
    """A content that is no list, and its residual: text, or in lenient nothing at all."""
    content = source.get(key)
    if isinstance(content, str):
        return content, {}
    if lenient and content is None:
        return None, {NULL: "null" if key in source else "absent"}
    raise wrong(path, "text or a list of blocks", content) if key in source else DecodeError(path, "missing")


def _read_role(source: dict[str, JsonValue], path: str, *, lenient: bool) -> str:
    role = text_at(source, "role", path)
    if role in ROLES or lenient:
        return role
    raise DecodeError(f"{path}.role", f"unknown role {role[:80]!r}; known are {', '.join(sorted(ROLES))}")


def _read_blocks(role: str, blocks: list[JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    calls: dict[int, tuple[ToolCall, JsonValue]] = {}
    results: dict[int, ChatMessage] = {}
    rest: dict[int, JsonValue] = {}
    for at, block in enumerate(blocks):
        read = _read_paired(role, block, f"{path}[{at}]", lenient=lenient)
        if isinstance(read, ChatMessage):
            results[at] = read
        elif read is not None:
            calls[at] = read
        else:
            rest[at] = block
    parts, residuals = read_parts(list(rest.values()), path, lenient=lenient, at=list(rest))
    if results:
        return _group(list(results.values()), role, parts, residuals, _places_of(list(rest), len(blocks)))
    return [_speaker(role, parts, residuals, list(calls.values()), _places_of(list(calls), len(blocks)))]


def _read_paired(
    role: str, block: JsonValue, path: str, *, lenient: bool
) -> tuple[ToolCall, JsonValue] | ChatMessage | None:
    """A call with its residual, or a result; None for every other block, and in lenient for one that is malformed."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in _HOME:
        return None
    try:
        if _HOME[kind] != role:
            raise DecodeError(path, f"a {kind} block in a message of role {role!r}")
        if kind == TOOL_RESULT:
            return read_result(block, path, lenient=lenient)
        call, residual = read_call(block, path)
        if lenient and not call.name:  # nobody could run it, and the rules let none in
            return None
        return call, residual
    except DecodeError:
        if not lenient:
            raise
        return None


def _places_of(later: Sequence[int], count: int) -> list[int] | None:
    """Where the things stand that are written after all others of `count`; None if they stand at the end already."""
    return None if list(later) == list(range(count - len(later), count)) else list(later)


def _group(
    results: list[ChatMessage],
    role: str,
    parts: list[Part],
    residuals: dict[str, JsonValue],
    places: list[int] | None,
) -> list[ChatMessage]:
    group = results[:1]
    for result in results[1:]:
        group.append(result.model_copy(update={"residual": {CONTINUES: True, **(result.residual or {})}}))
    if parts:
        at = {} if places is None else {REST_AT: places}
        section = {PARTS: residuals} if residuals else {}
        group.append(_message(role, _text_alone(parts), {CONTINUES: True, **at, **section}))
    return group


def _speaker(
    role: str,
    parts: list[Part],
    residuals: dict[str, JsonValue],
    calls: list[tuple[ToolCall, JsonValue]],
    places: list[int] | None,
) -> ChatMessage:
    of_calls = {str(idx): residual for idx, (_, residual) in enumerate(calls) if residual is not None}
    sections = {PARTS: residuals, CALLS: of_calls, CALLS_AT: places if calls else None}
    residual = {key: value for key, value in sections.items() if value}
    if not calls:
        return _message(role, parts, residual)
    return _message(role, _text_alone(parts) if parts else None, residual, [call for call, _ in calls])


def _text_alone(parts: list[Part]) -> str | list[Part]:
    [part, *others] = parts
    return part.text if isinstance(part, TextPart) and not others else parts


def _message(
    role: str, content: str | list[Part] | None, residual: dict[str, JsonValue], calls: list[ToolCall] | None = None
) -> ChatMessage:
    listed = {LISTED: True} if role in ("system", "tool") else {}
    return ChatMessage.model_validate(
        {
            "role": role,
            "content": content,
            "tool_calls": calls,
            "format": NAME,
            "residual": {**residual, **listed} or None,
        },
        context=LENIENT,
    )


def _with_envelope(first: ChatMessage, source: dict[str, JsonValue], role: str, *, alone: bool) -> ChatMessage:
    """The first message with what the source says beside role and content. Of a reply that is its metadata."""
    extra = {key: value for key, value in source.items() if key not in ("role", "content")}
    envelope: dict[str, JsonValue] = {} if list(source) == ["role", "content"] else {KEYS: list(source)}
    metadata = None
    if role == "assistant" and source.get("type") == "message" and alone:
        metadata = extra
    elif extra:
        envelope[EXTRA] = extra
    residual = {**(first.residual or {}), **envelope}
    return first.model_copy(update={"residual": residual or None, "response_metadata": metadata})
