"""A whole message of a chat completion as the chunks in which a server gives it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tests.formats.streams.reading import Cut, Json, Object, in_halves

_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
"""What comes in pieces; any other text comes whole."""


def chunk(finish_reason: str | None = None, **delta: Json) -> Object:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def split(message: Object, cut: Cut = in_halves) -> list[Object]:
    deltas = (delta for key, value in message.items() for delta in _deltas(key, value, cut))
    return [*(chunk(**delta) for delta in deltas), *end()]


def end() -> list[Object]:
    return [chunk("stop"), {**chunk(), "choices": [], "usage": {"total_tokens": 7}}]


def _deltas(key: str, value: Json, cut: Cut) -> Iterator[Object]:
    if key == "content" and isinstance(value, list):
        yield {key: []}
        yield from ({key: [piece]} for part in value for piece in _parts(part, cut))
    elif key == "tool_calls" and isinstance(value, list):
        yield {key: []}
        calls = [list(_calls(index, call, cut)) for index, call in enumerate(value)]
        yield from ({key: [piece]} for pieces in zip_longest(*calls) for piece in pieces if piece is not None)
    elif key == "function_call" and value is not None:
        yield from ({key: piece} for piece in _named(value, "arguments", cut))
    elif key == "audio" and isinstance(value, dict):
        yield {key: {**value, "data": "", "transcript": ""}}
        yield from ({key: {part: piece}} for part in ("data", "transcript") for piece in cut(value[part]))
    elif key == "reasoning_details" and isinstance(value, list):
        for detail in value:
            yield from ({key: [piece]} for piece in _detail(detail, cut))
    elif isinstance(value, str) and key in _TEXTS:
        yield from ({key: piece} for piece in cut(value))
    else:
        yield {key: value}


def _parts(part: Object, cut: Cut) -> Iterator[Object]:
    """Running texts come in pieces. What stands beside them comes with the first."""
    kind = part.get("type")
    if kind == "text":
        first, *rest = cut(part["text"])
        yield {**part, "text": first}
        yield from ({"type": "text", "text": piece} for piece in rest)
    elif kind == "thinking" and isinstance(part["thinking"], list):
        yield {**part, "thinking": []}
        yield from ({"type": kind, "thinking": [piece]} for one in part["thinking"] for piece in _parts(one, cut))
    else:
        yield part


def _detail(detail: Object, cut: Cut) -> Iterator[Object]:
    """A text comes in pieces, with its signature at the end."""
    if not isinstance(detail.get("text"), str):
        yield detail
        return
    signature = {"signature": ""} if isinstance(detail.get("signature"), str) else {}
    yield from ({**detail, "text": piece, **signature} for piece in cut(detail["text"]))
    if signature:
        at: Object = {key: detail[key] for key in ("index", "type") if key in detail}
        yield {**at, "signature": detail["signature"]}


def _calls(index: int, call: Object, cut: Cut) -> Iterator[Object]:
    for key, arguments in (("function", "arguments"), ("custom", "input")):
        if key in call:
            first, *rest = _named(call[key], arguments, cut)
            yield {"index": index, **call, key: first}
            yield from ({"index": index, key: piece} for piece in rest)
            return
    yield {"index": index, **call}


def _named(named: Object, key: str, cut: Cut) -> Iterator[Object]:
    if not isinstance(named.get(key), str):
        yield named
        return
    first, *rest = cut(named[key])
    yield {**named, key: first}
    yield from ({key: piece} for piece in rest)
