"""Events of the streams, and the deltas that they bring."""

from __future__ import annotations

from typing import Any

from chatledger.formats.streams import get_stream
from tests.formats.golden import Cases

SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}

EVENTS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "Nor"}}]},
        {"choices": [{"index": 0, "delta": {"reasoning": "th."}}]},
        {"choices": [{"index": 0, "delta": {"content": "Cold.", "refusal": "No."}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}]}}
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c2", "custom": {"name": "sh", "input": "ls"}}]}}]},
        {"choices": [{"delta": {"function_call": {"name": "f", "arguments": "{}"}}}]},
        {"choices": [], "usage": {"total_tokens": 1}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"role": "assistant"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "Nor"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "th."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Co"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ld."}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c1", "name": "f"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 2},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {"type": "tool_use", "id": "c2", "name": "f", "input": {"a": 1}},
        },
        {"type": "content_block_stop", "index": 3},
        {"type": "content_block_start", "index": 4, "content_block": SEARCH},
        {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": '{"q":1}'}},
        {"type": "content_block_stop", "index": 4},
        {"type": "content_block_start", "index": 5, "content_block": SEARCH},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": '{"q"'}},
        {"type": "content_block_stop", "index": 5},
        {"type": "content_block_start", "index": 6, "content_block": {"type": "redacted_thinking", "data": "QQ=="}},
        {"type": "content_block_stop", "index": 6},
        {"type": "message_stop"},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {}},
        {"type": "response.reasoning_summary_text.delta", "delta": "Nor"},
        {"type": "response.reasoning_text.delta", "delta": "th."},
        {"type": "response.output_item.done", "item": {"type": "reasoning", "encrypted_content": "c2ln"}},
        {"type": "response.output_text.delta", "delta": "Cold."},
        {"type": "response.refusal.delta", "delta": "No."},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c1", "name": "f"},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
        {
            "type": "response.output_item.added",
            "output_index": 3,
            "item": {"type": "custom_tool_call", "call_id": "c2", "name": "sh"},
        },
        {"type": "response.custom_tool_call_input.delta", "output_index": 3, "delta": "ls"},
        {"type": "response.output_item.added", "output_index": 4, "item": {"type": "web_search_call"}},
        {"type": "response.completed", "response": {}},
    ],
}


def cases() -> Cases:
    found: dict[str, Any] = {}
    for name, events in EVENTS.items():
        stream = get_stream(name)
        found[name] = [delta for event in events for delta in stream.feed(event)]
    return found
