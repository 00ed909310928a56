"""Payloads of agent-framework."""

from __future__ import annotations

from typing import Any

from chatledger.formats.agent_framework import CODEC
from tests.formats.agent_framework.samples import SAMPLES
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN

COLD: dict[str, Any] = {"type": "text", "text": "Cold.", "additional_properties": {}}
ANSWER: dict[str, Any] = {"type": "function_result", "call_id": "a", "result": {"degrees": 4}, "items": []}
STRICT: dict[str, Any] = {
    **SAMPLES,
    "missing, unknown and reordered keys": [
        {"contents": [{**COLD, "later": 1}, "bare"], "role": "user", "later": {"x": 1}}
    ],
    "a result that is no text": [{"type": "message", "role": "tool", "contents": [ANSWER]}],
}
LENIENT: dict[str, Any] = {
    "malformed": [
        {"type": "message", "role": "user", "contents": [{"type": "uri"}, {"text": "no type"}, None]},
        {"type": "message", "role": "assistant", "contents": [{"type": "function_call", "name": ""}]},
        {"type": "message", "role": "tool", "contents": [{"type": "function_result", "items": 1}]},
    ],
    "live objects": [
        {"type": "message", "role": "user", "contents": [COLD], "additional_properties": {"a": (1, {2: "a"})}}
    ],
}


def cases() -> Cases:
    return {
        **{name: CODEC.decode(payload).messages for name, payload in STRICT.items()},
        **{name: CODEC.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
        "of another origin": CODEC.decode(CODEC.encode(FOREIGN).payload).messages,
    }
