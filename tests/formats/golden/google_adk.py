"""Payloads of google-adk."""

from __future__ import annotations

from typing import Any

from chatledger.formats.google_adk import CODEC
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN
from tests.formats.google_adk.samples import SAMPLES

EVENT: dict[str, Any] = {"invocation_id": "e-1", "author": "helper", "id": "event-1", "timestamp": 5}


def said(*parts: Any, role: str = "model") -> list[Any]:
    return [{**EVENT, "content": {"parts": list(parts), "role": role}}]


RESULT: dict[str, Any] = {"function_response": {"id": "c", "name": "f", "response": {"output": "a"}}}
STRICT: dict[str, Any] = {
    **SAMPLES,
    "missing, unknown and reordered keys": [{"later": 1, "content": {"role": "user", "parts": [{"text": "a"}]}}],
    "data in the standard alphabet": said({"inline_data": {"data": "+/8=", "mime_type": "image/png"}}),
    "a call before a text": said({"function_call": {"name": "f"}}, {"text": "a"}),
    "a text before a result": said({"text": "a"}, RESULT, RESULT, role="user"),
    "results and calls": said({"function_call": {"name": "f"}}, RESULT),
    "no parts": [{**EVENT, "content": {"role": "model"}}, {**EVENT, "id": "", "content": {"parts": []}}],
}
LENIENT: dict[str, Any] = {
    "malformed": [
        *said({"function_call": {"name": ""}}, {"text": 1}, None),
        {**EVENT, "content": "text"},
        {**EVENT, "timestamp": None, "content": {"parts": "text"}},
    ]
}


def cases() -> Cases:
    return {
        **{name: CODEC.decode(payload).messages for name, payload in STRICT.items()},
        **{name: CODEC.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
        "of another origin": CODEC.decode(CODEC.encode(FOREIGN).payload).messages,
    }
