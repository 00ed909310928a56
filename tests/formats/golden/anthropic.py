"""Payloads of anthropic."""

from __future__ import annotations

from typing import Any

from chatledger.formats import get_codec
from tests.formats.golden import Cases

CACHED = {"cache_control": {"type": "ephemeral"}}
CALL = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "4 °C"}
TEXT = {"type": "text", "text": "Oslo?"}
PIXEL = {"type": "base64", "media_type": "image/png", "data": "QQ=="}

STRICT: dict[str, Any] = {
    "nothing to keep": [
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, CALL]},
        {"role": "user", "content": [RESULT]},
    ],
    "a request": {"model": "m", "max_tokens": 5, "system": "Be short.", "messages": [{"role": "user", "content": "a"}]},
    "a request with its keys in another order": {"messages": [{"role": "user", "content": "a"}], "system": "Be short."},
    "a prompt of blocks": {"system": [{**TEXT, **CACHED}, TEXT], "messages": [{"role": "user", "content": "a"}]},
    "keys in another order, and unknown ones": [{"content": "Oslo?", "later": {"x": 1}, "role": "user"}],
    "a prompt among the messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "Be short."}],
    "a reply": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "Cold.", "citations": None}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1},
        }
    ],
    "results and a text": [{"role": "user", "content": [RESULT, {**RESULT, "tool_use_id": "c2"}, TEXT]}],
    "a text before results": [{"role": "user", "content": [{**TEXT, **CACHED}, RESULT, {**RESULT, "is_error": True}]}],
    "results with residuals": [
        {
            "role": "user",
            "later": 1,
            "content": [
                {"tool_use_id": "c1", "type": "tool_result", **CACHED, "content": [{**TEXT, **CACHED}, {"type": "x"}]},
                {"type": "tool_result", "tool_use_id": "c2"},
            ],
        }
    ],
    "a call before a text, with residuals": [
        {"role": "assistant", "content": [{**CALL, "caller": {"type": "direct"}}, {**TEXT, **CACHED}]},
        {"role": "assistant", "content": [CALL, TEXT, {**CALL, "id": "c2"}]},
        {"role": "assistant", "content": [{**CALL, "input": '{"city'}]},
    ],
    "blocks": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "North.", "signature": "c2ln"},
                {"signature": None, "type": "thinking", "thinking": "North."},
                {"type": "redacted_thinking", "data": "QQ=="},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "image", "source": PIXEL},
                {"type": "image", "source": {**PIXEL, "later": 1}, **CACHED},
                {"type": "image", "source": {"url": "https://example.org/a.png", "type": "url"}},
                {"type": "document", "source": {"type": "file", "file_id": "f1"}, "title": "a.pdf"},
                {"type": "document", "title": None, "source": {"type": "url", "url": "https://example.org/a.pdf"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}},
            ],
        },
    ],
    "empty lists": [{"role": "user", "content": []}],
}
LENIENT: dict[str, Any] = {
    "no content": {"system": None, "messages": [{"role": "user", "content": None}, {"role": "assistant"}]},
    "an unknown role": [{"role": "narrator", "content": "It rains."}, {"role": "tool", "content": "4 °C"}],
    "malformed blocks": [
        {"role": "user", "content": [{"type": "text"}, {"x": 1}, CALL]},
        {"role": "assistant", "content": [RESULT, {**CALL, "name": ""}]},
    ],
}


def cases() -> Cases:
    codec = get_codec("anthropic")
    return {
        **{name: codec.decode(payload).messages for name, payload in STRICT.items()},
        **{name: codec.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
    }
