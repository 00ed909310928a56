"""Records of the shapes that imports know beside the formats."""

from __future__ import annotations

from typing import Any

from chatledger.models import RulesLevel
from chatledger.transfer.shapes import message_tree, sharegpt, swe_agent
from tests.formats.golden import Cases

CALL = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
REPLIES = [
    {"role": "assistant", "text": "Cold.", "message_id": "m2", "lang": "en"},
    {"message_id": "m3", "text": "Mild.", "role": "assistant", "replies": []},
]
TURNS = [
    {"from": "human", "value": "Oslo?"},
    {"value": "Wait.", "from": "assistant", "weight": 1},
    {"from": "function_call", "value": '{"name": "weather", "arguments": {"city":"Oslo"}}'},
    {"from": "observation", "value": None},
]

RECORDS: dict[str, tuple[Any, Any, RulesLevel]] = {
    "a message tree": (
        message_tree.SHAPE,
        {"message_id": "m1", "text": "Oslo?", "role": "prompter", "replies": REPLIES},
        "strict",
    ),
    "ShareGPT turns": (sharegpt.SHAPE, TURNS, "strict"),
    "ShareGPT turns beside a system text": (sharegpt.SHAPE, {"conversations": TURNS, "system": "Be short."}, "strict"),
    "ShareGPT, lenient": (
        sharegpt.SHAPE,
        [{"from": "narrator", "value": "It rains."}, {"from": "function_call", "value": "{"}],
        "lenient",
    ),
    "a SWE-agent trajectory": (
        swe_agent.SHAPE,
        [
            {"role": "assistant", "content": "", "tool_calls": [CALL], "agent": "main", "thought": ""},
            {"role": "tool", "content": "4 °C", "agent": "main", "tool_call_ids": ["c1"]},
        ],
        "strict",
    ),
}


def cases() -> Cases:
    return {
        name: [message for branch in shape.decode(record, rules).branches for message in branch.messages]
        for name, (shape, record, rules) in RECORDS.items()
    }
