"""Payloads against the request types of the providers' own SDKs, with keys forbidden that these do not have.

Two lists name what passes besides: keys that servers need back (`RequestKeys.besides`), and parts of other servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from chatledger.formats.model_view import get_provider
from tests.formats.model_view.request_types import REQUESTS, Strict

OTHER_PARTS: Mapping[str, Mapping[str, str]] = {
    "openai-chat": {"thinking": "Mistral takes its reasoning back", "reference": "Mistral takes its references back"}
}
"""Types of parts that only servers other than the SDK's know, and why they are sent."""


def validate(provider: str, payload: Any) -> None:
    """Raises ValidationError. Of a payload that is an object, its messages and instructions or items are checked."""
    lists = payload if isinstance(payload, dict) else {next(iter(REQUESTS[provider])): payload}
    for key, value in lists.items():
        if key in REQUESTS[provider] and not isinstance(value, str):  # the APIs take a text for one message
            _adapter(provider, key).validate_python(_without_other_parts(provider, value))


@cache
def _adapter(provider: str, key: str) -> TypeAdapter[Any]:
    strict = Strict(get_provider(provider).keys.besides)
    items: Any = list[strict.of(REQUESTS[provider][key])]  # type: ignore[misc]
    return TypeAdapter(items)


def _without_other_parts(provider: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    others = OTHER_PARTS.get(provider, {})
    return [
        {**message, "content": [part for part in message["content"] if part.get("type") not in others]}
        if others and isinstance(message.get("content"), list)
        else message
        for message in messages
    ]
