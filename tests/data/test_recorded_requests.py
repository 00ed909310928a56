"""The checker of the model views against the providers' own word: what they took passes, what they refused does not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.formats.provider_checker import refusals

_PROVIDERS = {
    "/chat/completions": "openai-chat",
    "/messages": "anthropic",
    "/messages/count_tokens": "anthropic",
    "/responses": "openai-responses",
    "/responses/compact": "openai-responses",
}


def recorded(data: Path) -> list[tuple[str, str, dict[str, Any], bool]]:
    """(where it stands, the provider, the request body, whether it was refused for what was in it)."""
    found = []
    for file in sorted((data / "pydantic_ai_http").glob("*.json")):
        for number, one in enumerate(json.loads(file.read_bytes())["interactions"]):
            provider = next((name for end, name in _PROVIDERS.items() if one["endpoint"].endswith(end)), None)
            if provider is not None:
                error = (one["response"] or {}).get("error") or {}
                refused = error.get("type") == "invalid_request_error" and error.get("code") != "tool_use_failed"
                found.append((f"{file.name}[{number}]", provider, one["request"], refused))
    return found


def test_every_request_that_a_provider_accepted_passes(data: Path) -> None:
    requests = recorded(data)
    assert Counter(provider for _, provider, _, _ in requests) == {
        "openai-chat": 49,
        "anthropic": 28,
        "openai-responses": 39,
    }
    taken = {where: refusals(provider, body) for where, provider, body, refused in requests if not refused}
    assert {where: problems for where, problems in taken.items() if problems} == {}


def test_the_view_refuses_the_request_that_the_provider_refused(data: Path) -> None:
    refused = {where: refusals(provider, body) for where, provider, body, refused in recorded(data) if refused}
    assert list(refused.values()) == [["input[1]: reasoning without the item that it led to"]]
