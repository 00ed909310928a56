"""Payloads of ai-sdk."""

from __future__ import annotations

from typing import Any

from chatledger.formats import get_codec
from tests.formats.ai_sdk.samples import histories
from tests.formats.golden import Cases

TEXT = {"type": "text", "text": "Cold.", "state": "done"}
CALL = {"type": "tool-weather", "toolCallId": "c1", "state": "input-available", "input": {"city": "Oslo"}}


def answer(*parts: Any, **head: Any) -> dict[str, Any]:
    return {"id": "a1", **head, "role": "assistant", "parts": list(parts)}


STRICT: dict[str, Any] = {
    **histories(),
    "nothing to keep": [answer({"type": "step-start"}, TEXT)],
    "heads": [
        {"parts": [], "role": "user"},
        answer(TEXT, metadata=[1], later=True),
        {"id": 1, "role": "assistant", "parts": []},
    ],
    "steps": [answer(TEXT, {"type": "step-start", "later": 1}, {"type": "step-start"}, TEXT)],
    "calls": [
        answer(
            CALL,
            {**CALL, "input": [1]},
            TEXT,
            {"toolCallId": "c2", "type": "dynamic-tool", "toolName": "f", "state": "output-available", "output": [1.5]},
            {**CALL, "state": "output-error", "errorText": "no", "title": "Weather"},
        )
    ],
    "parts": [
        {"id": "u1", "role": "user", "parts": [{"type": "later"}, {**TEXT, "text": "a"}, {**TEXT, "citations": []}]},
        answer({"type": "reasoning", "text": "hm", "providerMetadata": {"google": {"thoughtSignature": "YQ=="}}}),
    ],
}
LENIENT: dict[str, Any] = {
    "malformed": [
        {"role": "tool", "content": "x"},
        answer({"type": "text"}, {**CALL, "state": "later"}, {**CALL, "type": "tool-"}, None),
    ]
}


def cases() -> Cases:
    codec = get_codec("ai-sdk")
    found: Cases = {
        **{name: codec.decode(payload).messages for name, payload in STRICT.items()},
        **{name: codec.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
    }
    return found
