"""Payloads of langchain."""

from __future__ import annotations

from typing import Any

from chatledger.formats.langchain import CODEC
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN
from tests.formats.langchain.samples import SAMPLES

USER: dict[str, Any] = {"content": "Oslo?", "additional_kwargs": {}, "type": "human", "id": None}
STRICT: dict[str, Any] = {
    **SAMPLES,
    "missing, unknown and reordered keys": [{"data": {**USER, "later": 1}, "type": "human", "later": {"x": 1}}],
    "a type of tomorrow": [{"type": "event", "data": {**USER, "type": "event", "topic": "rain"}}],
}
LENIENT: dict[str, Any] = {
    "malformed": [
        {"type": "human", "data": {"content": [{"type": "text"}, {"type": "image"}]}},
        {"type": "human", "data": {"content": [None]}},
        {"type": "ai", "data": {"content": None, "tool_calls": [{"name": "", "args": {}, "id": "c"}]}},
    ],
    "live objects": [{"type": "tool", "data": {"content": "a", "tool_call_id": "c", "artifact": (1, {2: "a"})}}],
}


def cases() -> Cases:
    return {
        **{name: CODEC.decode(payload).messages for name, payload in STRICT.items()},
        **{name: CODEC.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
        "of another origin": CODEC.decode(CODEC.encode(FOREIGN).payload).messages,
    }
