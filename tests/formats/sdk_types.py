"""Payloads against the types of the providers' own SDKs, lists within lists included."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

_TYPES: dict[str, Any] = {
    "openai-chat": list[ChatCompletionMessageParam],
    "openai-responses": ResponseInputParam,
    "anthropic": list[MessageParam],
}


def validate(provider: str, payload: Any) -> None:
    """Raises ValidationError. Of a payload that is an object, its messages or its input items are checked."""
    if isinstance(payload, dict):
        payload = payload["messages"] if provider == "anthropic" else payload.get("input", [])
    if not isinstance(payload, str):  # the Responses API takes a text for its input
        _exhaust(_adapter(provider).validate_python(payload))


@cache
def _adapter(provider: str) -> TypeAdapter[Any]:
    return TypeAdapter(_TYPES[provider])


def _exhaust(value: Any) -> None:
    """The types say Iterable, which Pydantic judges item by item when somebody asks for the items."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, Iterator)):
        for one in value:
            _exhaust(one)
