"""Messages as agent-framework-core 1.23.0 dumps its own objects with `to_dict`, and what each one is about."""

from __future__ import annotations

from typing import Any

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "a question with a call": [
        {
            "type": "message",
            "role": "system",
            "contents": [{"type": "text", "text": "Be brief.", "additional_properties": {}}],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "user",
            "contents": [{"type": "text", "text": "How cold is Oslo?", "additional_properties": {}}],
            "author_name": "ada",
            "additional_properties": {"channel": "web"},
        },
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {"type": "text", "text": "I look.", "additional_properties": {}},
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "weather",
                    "arguments": '{"city": "Oslo"}',
                    "hosted": False,
                    "additional_properties": {},
                },
            ],
            "author_name": "Weather",
            "message_id": "msg_1",
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "tool",
            "contents": [
                {
                    "type": "function_result",
                    "call_id": "call_1",
                    "result": "4 °C",
                    "items": [{"type": "text", "text": "4 °C", "additional_properties": {}}],
                    "additional_properties": {},
                }
            ],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "assistant",
            "contents": [{"type": "text", "text": "4 °C.", "additional_properties": {}}],
            "author_name": "Weather",
            "additional_properties": {},
        },
    ],
    "several results": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {
                    "type": "function_call",
                    "call_id": "a",
                    "name": "weather",
                    "arguments": {"city": "Oslo"},
                    "status": "completed",
                    "hosted": False,
                    "id": "fc_1",
                    "additional_properties": {},
                },
                {"type": "text", "text": "and", "additional_properties": {}},
                {
                    "type": "function_call",
                    "call_id": "b",
                    "name": "tides",
                    "hosted": False,
                    "additional_properties": {},
                },
            ],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "tool",
            "contents": [
                {
                    "type": "function_result",
                    "call_id": "a",
                    "result": '{"degrees": 4}',
                    "items": [{"type": "text", "text": '{"degrees": 4}', "additional_properties": {}}],
                    "additional_properties": {},
                },
                {
                    "type": "function_result",
                    "call_id": "b",
                    "exception": "FunctionInvocationError",
                    "result": "Error: out of order",
                    "items": [{"type": "text", "text": "Error: out of order", "additional_properties": {}}],
                    "additional_properties": {},
                },
            ],
            "author_name": "Weather",
            "additional_properties": {},
        },
    ],
    "a result with an image": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {
                    "type": "function_call",
                    "call_id": "a",
                    "name": "chart",
                    "arguments": "{}",
                    "hosted": False,
                    "additional_properties": {},
                }
            ],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "tool",
            "contents": [
                {
                    "type": "function_result",
                    "call_id": "a",
                    "result": "The chart.\nDone.",
                    "items": [
                        {"type": "text", "text": "The chart.", "additional_properties": {}},
                        {
                            "type": "data",
                            "uri": "data:image/png;base64,iVBORw==",
                            "media_type": "image/png",
                            "additional_properties": {},
                        },
                        {"type": "text", "text": "Done.", "additional_properties": {}},
                    ],
                    "additional_properties": {},
                }
            ],
            "additional_properties": {},
        },
    ],
    "reasoning of OpenAI": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {
                    "type": "text_reasoning",
                    "text": "North.",
                    "protected_data": "gAAA",
                    "status": "completed",
                    "id": "rs_1",
                    "additional_properties": {},
                },
                {"type": "text_reasoning", "text": "So cold.", "id": "rs_1", "additional_properties": {}},
                {"type": "text", "text": "Cold.", "additional_properties": {}},
            ],
            "additional_properties": {},
        }
    ],
    "reasoning of Anthropic": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {"type": "text_reasoning", "text": "North.", "protected_data": "c2ln", "additional_properties": {}},
                {"type": "text_reasoning", "protected_data": "c2lo", "additional_properties": {}},
                {"type": "text", "text": "Cold.", "additional_properties": {}},
            ],
            "additional_properties": {},
        }
    ],
    "media": [
        {
            "type": "message",
            "role": "user",
            "contents": [
                {"type": "text", "text": "These?", "additional_properties": {}},
                {
                    "type": "uri",
                    "uri": "https://example.com/a.png",
                    "media_type": "image/png",
                    "additional_properties": {},
                },
                {
                    "type": "data",
                    "uri": "data:audio/wav;base64,UklGRg==",
                    "media_type": "audio/wav",
                    "name": "a.wav",
                    "additional_properties": {},
                },
                {
                    "type": "uri",
                    "uri": "https://example.com/a.mp4",
                    "media_type": "video/mp4",
                    "additional_properties": {},
                },
                {
                    "type": "data",
                    "uri": "data:application/pdf;base64,JVBE",
                    "media_type": "application/pdf",
                    "name": "a.pdf",
                    "file_id": "file_1",
                    "additional_properties": {},
                },
                {
                    "type": "data",
                    "uri": "data:text/plain,hello",
                    "media_type": "text/plain",
                    "additional_properties": {},
                },
                {"type": "uri", "uri": "https://example.com/x", "additional_properties": {}},
                {
                    "type": "hosted_file",
                    "media_type": "application/pdf",
                    "file_id": "file_2",
                    "additional_properties": {},
                },
            ],
            "additional_properties": {},
        }
    ],
    "tools of a provider": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {
                    "type": "function_call",
                    "call_id": "h",
                    "name": "search",
                    "arguments": "{}",
                    "server_name": "docs",
                    "hosted": True,
                    "additional_properties": {},
                },
                {
                    "type": "mcp_server_tool_call",
                    "call_id": "m",
                    "arguments": {"q": "tides"},
                    "tool_name": "search",
                    "server_name": "docs",
                    "additional_properties": {},
                },
                {
                    "type": "mcp_server_tool_result",
                    "call_id": "m",
                    "output": [{"type": "text", "text": "low", "additional_properties": {}}],
                    "additional_properties": {},
                },
                {
                    "type": "code_interpreter_tool_call",
                    "call_id": "i",
                    "inputs": [{"type": "text", "text": "1 + 1", "additional_properties": {}}],
                    "additional_properties": {},
                },
                {
                    "type": "code_interpreter_tool_result",
                    "call_id": "i",
                    "outputs": [{"type": "text", "text": "2", "additional_properties": {}}],
                    "additional_properties": {},
                },
                {
                    "type": "function_call",
                    "call_id": "own",
                    "name": "look",
                    "arguments": "{}",
                    "informational_only": True,
                    "hosted": False,
                    "additional_properties": {},
                },
                {
                    "type": "function_result",
                    "call_id": "own",
                    "result": "seen",
                    "items": [{"type": "text", "text": "seen", "additional_properties": {}}],
                    "additional_properties": {},
                },
                {
                    "type": "text",
                    "text": "Two.",
                    "additional_properties": {},
                    "annotations": [
                        {
                            "type": "citation",
                            "title": "Sums",
                            "url": "https://example.com",
                            "annotated_regions": [{"type": "text_span", "start_index": 0, "end_index": 3}],
                        }
                    ],
                },
                {
                    "type": "usage",
                    "usage_details": {"input_token_count": 3, "output_token_count": 1},
                    "additional_properties": {},
                },
            ],
            "additional_properties": {},
        }
    ],
    "approval": [
        {
            "type": "message",
            "role": "assistant",
            "contents": [
                {
                    "type": "function_call",
                    "call_id": "d",
                    "name": "delete",
                    "arguments": '{"file": "a"}',
                    "hosted": False,
                    "id": "occ_1",
                    "additional_properties": {},
                },
                {
                    "type": "function_approval_request",
                    "function_call": {
                        "type": "function_call",
                        "call_id": "d",
                        "name": "delete",
                        "arguments": '{"file": "a"}',
                        "hosted": False,
                        "id": "occ_1",
                        "additional_properties": {},
                    },
                    "user_input_request": True,
                    "id": "occ_1",
                    "additional_properties": {},
                },
            ],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "user",
            "contents": [
                {
                    "type": "function_approval_response",
                    "function_call": {
                        "type": "function_call",
                        "call_id": "d",
                        "name": "delete",
                        "arguments": '{"file": "a"}',
                        "hosted": False,
                        "id": "occ_1",
                        "additional_properties": {},
                    },
                    "approved": True,
                    "id": "occ_1",
                    "additional_properties": {},
                }
            ],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "tool",
            "contents": [
                {
                    "type": "function_approval_response",
                    "function_call": {
                        "type": "function_call",
                        "call_id": "d",
                        "name": "delete",
                        "arguments": '{"file": "a"}',
                        "hosted": False,
                        "id": "occ_1",
                        "additional_properties": {},
                    },
                    "approved": True,
                    "id": "occ_1",
                    "additional_properties": {},
                },
                {
                    "type": "function_result",
                    "call_id": "d",
                    "result": "gone",
                    "items": [{"type": "text", "text": "gone", "additional_properties": {}}],
                    "id": "occ_1",
                    "additional_properties": {},
                },
            ],
            "additional_properties": {},
        },
    ],
    "other roles": [
        {
            "type": "message",
            "role": "developer",
            "contents": [{"type": "text", "text": "Be brief.", "additional_properties": {}}],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "narrator",
            "contents": [{"type": "text", "text": "It rains.", "additional_properties": {}}],
            "additional_properties": {},
        },
        {
            "type": "message",
            "role": "tool",
            "contents": [{"type": "text", "text": "nothing", "additional_properties": {}}],
            "additional_properties": {},
        },
        {"type": "message", "role": "user", "contents": [], "additional_properties": {}},
        {
            "type": "message",
            "role": "assistant",
            "contents": [{"type": "error", "message": "no", "error_code": "429", "additional_properties": {}}],
            "additional_properties": {},
        },
    ],
    "with every field": [
        {
            "type": "message",
            "role": "user",
            "contents": [
                {
                    "type": "text",
                    "text": "Oslo?",
                    "protected_data": None,
                    "uri": None,
                    "media_type": None,
                    "message": None,
                    "error_code": None,
                    "error_details": None,
                    "usage_details": None,
                    "call_id": None,
                    "name": None,
                    "arguments": None,
                    "exception": None,
                    "result": None,
                    "items": None,
                    "file_id": None,
                    "vector_store_id": None,
                    "inputs": None,
                    "outputs": None,
                    "image_id": None,
                    "commands": None,
                    "timeout_ms": None,
                    "max_output_length": None,
                    "status": None,
                    "actions": None,
                    "screenshot": None,
                    "pending_safety_checks": None,
                    "acknowledged_safety_checks": None,
                    "stdout": None,
                    "stderr": None,
                    "exit_code": None,
                    "timed_out": None,
                    "tool_name": None,
                    "server_name": None,
                    "output": None,
                    "hosted": None,
                    "function_call": None,
                    "user_input_request": None,
                    "approved": None,
                    "id": None,
                    "consent_link": None,
                    "merge_mode": None,
                    "additional_properties": {},
                }
            ],
            "author_name": None,
            "message_id": None,
            "additional_properties": {},
        }
    ],
}
