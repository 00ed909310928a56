"""A payload as messages: a request's `system` and `messages`, or the list alone.

The rest of a request (model, tools, max_tokens, …) is kept in the residual of the first message and comes back with it.

A message of the API may become several stored messages. Each tool result becomes a separate message, and a user message
may hold several results and other blocks. They become a group: the results in order, then one user message with the
rest, so that no call is open when the user speaks. All but the first of a group are marked as continuing the message
before.

The content of a message with calls or results is always a list, so a single text in it is read as text, not as a part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.parts import (
    LISTED,
    MESSAGES,
    NAME,
    PARTS,
    PAYLOAD,
    ROLES,
    SYSTEM,
    TOOL_RESULT,
    TOOL_USE,
    read_call,
    read_parts,
    read_result,
)
from chatledger.formats.anthropic.write import CALLS, CALLS_AT, NULL, REST_AT
from chatledger.formats.wire.fields import as_object, nameless, role_at, wrong
from chatledger.formats.wire.plain import dump_all, dump_given, plain_value, require_json
from chatledger.formats.wire.residual import EXTRA, KEYS, keep, positions_of
from chatledger.models import CONTINUES, LENIENT, ChatMessage, Loss, Part, TextPart, ToolCall
from chatledger.models.json import JsonValue

_DEPTH = 8
"""The maximum depth of objects in a payload: messages, their blocks, the blocks of a tool result, their sources."""
_ROLE_OF = {TOOL_USE: "assistant", TOOL_RESULT: "user"}
"""The only role in whose messages these blocks have a meaning."""


def read_payload(payload: object, *, lenient: bool) -> tuple[list[ChatMessage], list[Loss]]:
    """The messages of a payload; if lenient, also the keys that no message can keep. Raises DecodeError."""
    source = _plain_payload(payload)
    sources = source.get(MESSAGES)
    if not isinstance(sources, list):
        raise DecodeError(MESSAGES, "missing") if MESSAGES not in source else wrong(MESSAGES, "a list", sources)
    messages = [_read_system(source, lenient=lenient)] if SYSTEM in source else []
    for index, value in enumerate(sources):
        path = f"{MESSAGES}[{index}]"
        messages += _read_message(as_object(value, path), path, lenient=lenient)
    residual = keep(source, {key: source[key] for key in (SYSTEM, MESSAGES) if key in source})
    return _with_residual(messages, source, residual, lenient=lenient)


def plain(value: object, path: str) -> Any:
    """The value with each object of the SDK in it dumped.

    Keys that were not set stay absent, except for a `role` or a `type` that a class has as a default.
    """
    return plain_value(value, path, _DEPTH, _dump)


def _dump(model_dump: Callable[..., Any]) -> object:
    set_fields = dump_given(model_dump)
    return (
        dump_all(model_dump)
        if isinstance(set_fields, dict) and not {"role", "type"} & set_fields.keys()
        else set_fields
    )


def _plain_payload(payload: object) -> dict[str, Any]:
    if isinstance(payload, list):
        payload = {MESSAGES: payload}
    if not isinstance(payload, dict):
        raise wrong(MESSAGES, "an object with messages or a list of messages", payload)
    if MESSAGES not in payload and "role" in payload:
        raise DecodeError(MESSAGES, "expected a list of messages, not a single message")
    source = {key: plain(value, str(key)) for key, value in payload.items()}
    require_json(source, "")
    return source


def _read_system(source: dict[str, JsonValue], *, lenient: bool) -> ChatMessage:
    if isinstance(source[SYSTEM], list):
        parts, residuals = read_parts(source[SYSTEM], SYSTEM, lenient=lenient)
        return ChatMessage(
            role="system", content=parts, format=NAME, residual={PARTS: residuals} if residuals else None
        )
    content, residual = _read_plain(source, SYSTEM, SYSTEM, lenient=lenient)
    return ChatMessage(role="system", content=content, format=NAME, residual=residual or None)


def _with_residual(
    messages: list[ChatMessage], source: dict[str, JsonValue], residual: dict[str, JsonValue] | None, *, lenient: bool
) -> tuple[list[ChatMessage], list[Loss]]:
    if residual is None:
        return messages, []
    if messages:
        first = messages[0]
        with_payload = {**(first.residual or {}), PAYLOAD: residual}
        return [first.model_copy(update={"residual": with_payload}), *messages[1:]], []
    unknown = [key for key in source if key != MESSAGES]
    if not lenient:
        raise DecodeError(unknown[0], "the request has no message to store this key with; add a message")
    return [], [Loss("payload", None, key) for key in unknown]


def _read_message(source: dict[str, JsonValue], path: str, *, lenient: bool) -> list[ChatMessage]:
    """The stored messages of one message of the API, at least one. Raises DecodeError with the path of the
    first error.
    """
    role = role_at(source, path, ROLES, lenient=lenient)
    content = source.get("content")
    if isinstance(content, list):
        first, *others = _read_blocks(role, content, f"{path}.content", lenient=lenient)
    else:
        first, others = _built(role, *_read_plain(source, "content", f"{path}.content", lenient=lenient)), []
    return [_with_envelope(first, source, role, alone=not others), *others]


def _read_plain(source: dict[str, JsonValue], key: str, path: str, *, lenient: bool) -> tuple[str | None, Any]:
    """A content that is not a list, and its residual: text, or None if lenient."""
    content = source.get(key)
    if isinstance(content, str):
        return content, {}
    if lenient and content is None:
        return None, {NULL: "null" if key in source else "absent"}
    raise wrong(path, "text or a list of blocks", content) if key in source else DecodeError(path, "missing")


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
        return _group(list(results.values()), role, parts, residuals, positions_of(list(rest), len(blocks)))
    return [_without_results(role, parts, residuals, list(calls.values()), positions_of(list(calls), len(blocks)))]


def _read_paired(
    role: str, block: JsonValue, path: str, *, lenient: bool
) -> tuple[ToolCall, JsonValue] | ChatMessage | None:
    """A call with its residual, or a result; None for every other block, and for a malformed one if lenient."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in _ROLE_OF:
        return None
    try:
        if _ROLE_OF[kind] != role:
            raise DecodeError(path, f"a message of role {role!r} cannot have a {kind} block")
        if kind == TOOL_RESULT:
            return read_result(block, path, lenient=lenient)
        call, residual = read_call(block, path)
        if not call.name:
            raise nameless(f"{path}.name")
        return call, residual
    except DecodeError:
        if not lenient:
            raise
        return None


def _group(
    results: list[ChatMessage],
    role: str,
    parts: list[Part],
    residuals: dict[str, JsonValue],
    positions: list[int] | None,
) -> list[ChatMessage]:
    group = results[:1]
    for result in results[1:]:
        group.append(result.model_copy(update={"residual": {CONTINUES: True, **(result.residual or {})}}))
    if parts:
        at = {} if positions is None else {REST_AT: positions}
        section = {PARTS: residuals} if residuals else {}
        group.append(_built(role, _text_alone(parts), {CONTINUES: True, **at, **section}))
    return group


def _without_results(
    role: str,
    parts: list[Part],
    residuals: dict[str, JsonValue],
    calls: list[tuple[ToolCall, JsonValue]],
    positions: list[int] | None,
) -> ChatMessage:
    of_calls = {str(idx): residual for idx, (_, residual) in enumerate(calls) if residual is not None}
    sections = {PARTS: residuals, CALLS: of_calls, CALLS_AT: positions if calls else None}
    residual = {key: value for key, value in sections.items() if value}
    if not calls:
        return _built(role, parts, residual)
    return _built(role, _text_alone(parts) if parts else None, residual, [call for call, _ in calls])


def _text_alone(parts: list[Part]) -> str | list[Part]:
    [part, *others] = parts
    return part.text if isinstance(part, TextPart) and not others else parts


def _built(
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
    """The first message with the other keys of the source. The keys of a reply become its metadata."""
    extra = {key: value for key, value in source.items() if key not in ("role", "content")}
    envelope: dict[str, JsonValue] = {} if list(source) == ["role", "content"] else {KEYS: list(source)}
    metadata = None
    if role == "assistant" and source.get("type") == "message" and alone:
        metadata = extra
    elif extra:
        envelope[EXTRA] = extra
    residual = {**(first.residual or {}), **envelope}
    return first.model_copy(update={"residual": residual or None, "response_metadata": metadata})
