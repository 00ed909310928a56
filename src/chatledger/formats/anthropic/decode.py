"""A payload as messages: a request's `system` and `messages`, or the list alone.

What else a request says (model, tools, max_tokens, …) stays with the first message, so that it comes back with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.contents import PARTS, read_parts
from chatledger.formats.anthropic.names import NAME
from chatledger.formats.anthropic.splitting import read_message, read_plain
from chatledger.formats.wire.fields import as_object, wrong
from chatledger.formats.wire.plain import plain_value, require_json
from chatledger.formats.wire.residual import keep
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import JsonValue

MESSAGES = "messages"
SYSTEM = "system"
PAYLOAD = "payload"
"""Residual of the first message: keys and extra of the payload around it."""
_DEPTH = 8
"""How far down objects may stand in a payload: messages, their blocks, those of a tool result, their sources."""


def read_payload(payload: object, *, lenient: bool) -> tuple[list[ChatMessage], list[Loss]]:
    """The messages of a payload, and in lenient the keys that no message can keep. Raises DecodeError."""
    source = _plain_payload(payload)
    sources = source.get(MESSAGES)
    if not isinstance(sources, list):
        raise DecodeError(MESSAGES, "missing") if MESSAGES not in source else wrong(MESSAGES, "a list", sources)
    messages = [_read_system(source, lenient=lenient)] if SYSTEM in source else []
    for index, value in enumerate(sources):
        path = f"{MESSAGES}[{index}]"
        messages += read_message(as_object(value, path), path, lenient=lenient)
    residual = keep(source, {key: source[key] for key in (SYSTEM, MESSAGES) if key in source})
    return _with_residual(messages, source, residual, lenient=lenient)


def _plain_payload(payload: object) -> dict[str, Any]:
    if isinstance(payload, list):
        payload = {MESSAGES: payload}
    if not isinstance(payload, dict):
        raise wrong(MESSAGES, "an object with messages, or a list of messages,", payload)
    if MESSAGES not in payload and "role" in payload:
        raise DecodeError(MESSAGES, "a single message was given; the payload is a list of messages")
    source = {key: plain(value, str(key)) for key, value in payload.items()}
    require_json(source, "")
    return source


def plain(value: object, path: str) -> Any:
    """The value with each object of the SDK in it dumped.

    Keys that were not given stay absent, but for a `role` or a `type` that a class has as a default.
    """
    return plain_value(value, path, _DEPTH, _dump)


def _dump(model_dump: Callable[..., Any]) -> object:
    """JSON with the names of the API: the SDK has dates in places, and fields whose names Python keeps for itself.

    It builds objects without validating them, so a block of a newer API stands in a class that does not fit, and
    Pydantic would warn of it.
    """
    options = {"mode": "json", "by_alias": True, "warnings": False}
    try:
        given = model_dump(**options, exclude_unset=True)
        if isinstance(given, dict) and not {"role", "type"} & given.keys():
            return model_dump(**options)
    except TypeError:  # a model_dump of an older or another kind, without options
        return model_dump()
    return given


def _read_system(source: dict[str, JsonValue], *, lenient: bool) -> ChatMessage:
    if isinstance(source[SYSTEM], list):
        parts, residuals = read_parts(source[SYSTEM], SYSTEM, lenient=lenient)
        return ChatMessage(
            role="system", content=parts, format=NAME, residual={PARTS: residuals} if residuals else None
        )
    content, residual = read_plain(source, SYSTEM, SYSTEM, lenient=lenient)
    return ChatMessage(role="system", content=content, format=NAME, residual=residual or None)


def _with_residual(
    messages: list[ChatMessage], source: dict[str, JsonValue], residual: dict[str, JsonValue] | None, *, lenient: bool
) -> tuple[list[ChatMessage], list[Loss]]:
    if residual is None:
        return messages, []
    if messages:
        first = messages[0]
        kept = {**(first.residual or {}), PAYLOAD: residual}
        return [first.model_copy(update={"residual": kept}), *messages[1:]], []
    unknown = [key for key in source if key != MESSAGES]
    if not lenient:
        raise DecodeError(unknown[0], "there is no message with which it could be kept")
    return [], [Loss("payload", None, key) for key in unknown]
