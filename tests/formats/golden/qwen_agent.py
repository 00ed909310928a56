"""Payloads of qwen-agent."""

from __future__ import annotations

from typing import Any

from chatledger.formats.qwen_agent import CODEC, ContentItem, FunctionCall, Message
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN

CALL = {"name": "weather", "arguments": '{"city": "Oslo"}'}

STRICT: dict[str, Any] = {
    "nothing to keep": [
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "content": "", "reasoning_content": "North."},
        {"role": "assistant", "content": "", "function_call": CALL, "extra": {"function_id": "c1"}},
        {"role": "function", "content": "4 °C", "name": "weather", "extra": {"function_id": "c1"}},
    ],
    "keys in another order, null and unknown ones": [
        {"content": None, "role": "user", "name": None, "later": {"x": 1}},
        {"role": "user", "content": "Oslo?", "extra": {"later": 1}},
    ],
    "a call with its keys in another order": [
        {"role": "assistant", "content": "", "function_call": {"arguments": "{}", "name": "weather"}},
        {"role": "assistant", "content": "", "function_call": CALL, "extra": {"later": 1, "function_id": "c1"}},
    ],
    "items": [
        {
            "role": "user",
            "content": [
                {"text": "this?", "image": None},
                {"image": "https://example.org/a.png"},
                {"file": "a.pdf", "text": None},
                {"audio": {"data": "QQ==", "format": "wav"}},
                {"audio": {"data": "https://example.org/a.wav", "format": "wav"}},
                {"audio": {"format": "wav", "data": "QQ=="}},
                {"audio": "https://example.org/a.wav"},
                {"video": ["a.png", "b.png"]},
                {"video": "a.mp4"},
            ],
            "reasoning_content": [{"text": "So."}, {"file": "", "text": "North."}],
        }
    ],
    "an id that names no call": [
        {"role": "assistant", "content": "", "function_call": CALL},
        {"role": "function", "content": "4 °C", "name": "weather", "extra": {"function_id": "1"}},
    ],
    "objects": [
        Message(role="user", content=[ContentItem(text="Oslo?"), ContentItem(image="a.png")]),
        Message("assistant", "", reasoning_content="So.", function_call=FunctionCall("weather", "{}"), extra={"x": 1}),
        {"role": "user", "content": "a dict among them"},
    ],
}
LENIENT: dict[str, Any] = {
    "an unknown role": [{"role": "narrator", "content": "It rains."}],
    "malformed": [
        {"role": "user", "content": [{"text": "a", "image": "b"}, {"type": "later", "later": 1}, 1]},
        {"role": "assistant", "content": 1, "name": 2, "reasoning_content": {"x": 1}},
        {"role": "assistant", "content": "", "function_call": {"name": "", "arguments": "{}", "later": 1}},
        {"role": "assistant", "content": "", "function_call": {"name": "weather"}, "extra": "text"},
    ],
    "live objects": [{"role": "user", "content": "a", "extra": {"set": (1, 2), 3: "a key"}}],
}


def cases() -> Cases:
    carried = CODEC.encode(FOREIGN, carry=True).payload
    changed = [{**carried[0], "role": "user"}, *carried[1:-1]]
    return {
        **{name: CODEC.decode(payload).messages for name, payload in STRICT.items()},
        **{name: CODEC.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
        "carried, read as rows": CODEC.decode([{**row, "later": 1} for row in changed], rules="lenient").messages,
        "carried": CODEC.decode(carried).messages,
        "not carried": CODEC.decode(CODEC.encode(FOREIGN).payload, rules="lenient").messages,
    }
