"""Payloads of openai-responses."""

from __future__ import annotations

from typing import Any

from chatledger.formats import get_codec
from tests.formats.golden import Cases

SAID = {"type": "output_text", "text": "Cold.", "annotations": []}
MESSAGE = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [SAID]}
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'}
CUSTOM = {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "North."}]}
IMAGE = "https://example.org/a.png"

STRICT: dict[str, Any] = {
    "nothing to keep": [{"role": "user", "content": "Oslo?"}, CALL, {"role": "assistant", "content": "Cold."}],
    "a text": "Oslo?",
    "a text with instructions": {"instructions": "Be short.", "input": "Oslo?"},
    "a text with null instructions": {"input": "Oslo?", "instructions": None},
    "items with instructions": {"input": [{"role": "user", "content": "Oslo?"}], "instructions": "Be short."},
    "instructions alone": {"instructions": "Be short."},
    "a message with more": [{**MESSAGE, "phase": "final"}, {"content": "Oslo?", "role": "user", "type": "message"}],
    "a turn of several items": [
        {
            **THOUGHT,
            "summary": [{"type": "summary_text", "text": "North."}, {"type": "summary_text", "text": "Cold."}],
            "content": [{"type": "reasoning_text", "text": "So."}],
            "encrypted_content": "c2ln",
            "status": None,
        },
        MESSAGE,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {**CALL, "id": "fc_1", "status": "completed"},
        CUSTOM,
    ],
    "reasoning of another shape": [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "later", "x": 1}]}],
    "calls of other shapes": [
        {"name": "weather", "type": "function_call", "arguments": {"city": "Oslo"}, "call_id": None},
        {"role": "user", "content": "Oslo?"},
        {"type": "custom_tool_call", "name": "sh", "input": None},
    ],
    "results": [
        {"type": "function_call_output", "call_id": "c1", "output": "4 °C"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "4"}], "id": "o1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "a.txt"},
        {"type": "function_call_output", "output": None},
    ],
    "items that are kept whole": [{"type": "mcp_list_tools", "server_label": "s"}, {"id": "msg_0"}],
    "no content": [{"role": "user"}, {"role": "user", "content": None}, {"role": "user", "content": []}],
    "parts": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "this?", "later": 1},
                {"type": "text", "text": "so?"},
                {"type": "input_image", "image_url": IMAGE},
                {"type": "input_image", "file_id": "f1", "detail": "low"},
                {"type": "input_image", "detail": "low"},
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3", "later": 1}},
                {"type": "input_file", "file_url": "https://example.org/a.pdf", "filename": None},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="},
                {"type": "input_file", "filename": "a.pdf"},
                {"type": "later", "x": 1},
            ],
        },
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}, {**SAID, "annotations": [{"x": 1}]}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "no annotations"}]},
    ],
}
LENIENT: dict[str, Any] = {
    "an unknown role": [{"role": "narrator", "content": "It rains."}],
    "malformed items and parts": [
        {"role": "user", "content": [{"type": "input_text"}, {"type": 1}]},
        {**CALL, "name": ""},
        {"type": "function_call", "arguments": 1},
    ],
    "calls of openai-chat": [{"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}],
}


def cases() -> Cases:
    codec = get_codec("openai-responses")
    return {
        **{name: codec.decode(payload).messages for name, payload in STRICT.items()},
        **{name: codec.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
    }
