"""Payloads of openai-chat."""

from __future__ import annotations

from typing import Any

from chatledger.formats import get_codec
from tests.formats.golden import Cases

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
IMAGE = "https://example.org/a.png"

STRICT: dict[str, Any] = {
    "nothing to keep": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "4 °C"},
    ],
    "keys in another order, and unknown ones": [{"content": "Oslo?", "later": {"b": 1, "a": [None]}, "role": "user"}],
    "null keys": [{"role": "assistant", "content": "Cold.", "refusal": None, "tool_calls": None, "name": None}],
    "no content": [{"role": "assistant"}, {"role": "assistant", "content": None}],
    "an empty list of calls": [{"role": "assistant", "content": "Cold.", "tool_calls": []}],
    "a refusal in its own key": [{"role": "assistant", "content": None, "refusal": "No."}],
    "a transcript": [
        {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Cold.", "data": "QQ=="}},
        {"role": "assistant", "audio": {"id": "a1"}},
    ],
    "reasoning under each key": [
        {"role": "assistant", "content": "Cold.", "reasoning_content": "North."},
        {"role": "assistant", "content": "Cold.", "reasoning": "North."},
        {"role": "assistant", "content": "Cold.", "reasoning": {"effort": "low"}},
    ],
    "a legacy call and its result": [
        {"role": "assistant", "content": None, "function_call": {"arguments": "{}", "name": "weather", "later": 1}},
        {"role": "assistant", "content": "", "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "4 °C"},
    ],
    "calls": [
        {"role": "assistant", "content": "", "tool_calls": [CALL, {**CALL, "id": "c2", "index": 1}]},
        {"role": "assistant", "tool_calls": [{"function": {"arguments": None, "name": "f", "later": 1}, "id": None}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "later", "later": {"x": 1}}]},
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
    ],
    "text parts": [
        {"role": "user", "content": [{"text": "Oslo?", "type": "text", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": [{"type": "later", "x": 1}, {"text": "no type"}]},
    ],
    "thinking parts": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "North."}]},
                {"type": "thinking", "thinking": [{"type": "text", "text": "N"}, {"type": "reference", "ids": [1]}]},
                {"type": "thinking", "thinking": "North.", "signature": "c2ln"},
                {"type": "thinking", "thinking": "North."},
            ],
        }
    ],
    "media": [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
                {"type": "image_url", "image_url": {"later": 1, "url": IMAGE}},
                {"type": "image_url", "image_url": IMAGE},
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "later", "x": 1}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_id": "f1"}},
            ],
        }
    ],
}
LENIENT: dict[str, Any] = {
    "a malformed part": [{"role": "user", "content": [{"type": "text"}]}],
    "an unknown role": [{"role": "narrator", "content": "It rains."}],
    "calls without a name": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{**CALL, "function": {"name": "", "arguments": "{}"}}, CALL],
        },
        {"role": "assistant", "content": "", "function_call": {"name": "", "arguments": "{}"}},
    ],
}


def cases() -> Cases:
    codec = get_codec("openai-chat")
    return {
        **{name: codec.decode(payload).messages for name, payload in STRICT.items()},
        **{name: codec.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
    }
