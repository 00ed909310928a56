"""Payloads of agent-service."""

from __future__ import annotations

from typing import Any

from chatledger.formats.agent_service import CODEC, ChatHistory, ChatMessage
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN

CALL: dict[str, Any] = {"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
FULL: dict[str, Any] = {
    "type": "human",
    "content": "Oslo?",
    "tool_calls": [],
    "tool_call_id": None,
    "run_id": None,
    "response_metadata": {},
    "custom_data": {},
}

STRICT: dict[str, Any] = {
    "nothing to keep": [FULL, {**FULL, "type": "ai", "tool_calls": [CALL], "run_id": "run-1"}],
    "missing, unknown and reordered keys": [
        {"type": "human", "content": "Oslo?"},
        {"content": "Oslo?", "type": "human", "later": {"x": 1}},
    ],
    "calls": [
        {**FULL, "type": "ai", "tool_calls": [CALL, {**CALL, "later": 1}]},
        {**FULL, "type": "ai", "tool_calls": [{"id": None, "args": {}, "name": "weather"}]},
    ],
    "a history": {"messages": [FULL]},
    "a history with more": {"thread": "t", "messages": [FULL, FULL], "later": [1]},
    "custom data": [{**FULL, "type": "custom", "custom_data": {"role": "system", "chatledger": {"format": 1}}}],
    "objects": ChatHistory(
        messages=[
            ChatMessage(type="human", content="Oslo?"),
            ChatMessage(**{**FULL, "type": "ai", "tool_calls": [CALL]}),
            ChatMessage(type="tool", content="4 °C", tool_call_id="c1", run_id="run-1"),
        ]
    ),
}
LENIENT: dict[str, Any] = {
    "an unknown type": [{"type": "narrator", "content": "It rains."}],
    "malformed": [
        {**FULL, "content": 1, "run_id": "", "response_metadata": [1]},
        {**FULL, "type": "ai", "tool_calls": [{**CALL, "name": ""}]},
        {**FULL, "type": "ai", "tool_calls": [{**CALL, "args": "{city"}, {**CALL, "args": [1]}]},
        {**FULL, "type": "ai", "tool_calls": "none"},
    ],
    "live objects": [{**FULL, "custom_data": {"set": (1, 2), 3: "a key"}}],
}


def cases() -> Cases:
    carried = CODEC.encode(FOREIGN, carry=True).payload
    changed = {"messages": [{**row, "later": 1} for row in carried["messages"]]}
    return {
        **{name: CODEC.decode(payload).messages for name, payload in STRICT.items()},
        **{name: CODEC.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
        "carried, read as rows": CODEC.decode(changed).messages,
        "carried": CODEC.decode(carried).messages,
        "not carried": CODEC.decode(CODEC.encode(FOREIGN).payload).messages,
    }
