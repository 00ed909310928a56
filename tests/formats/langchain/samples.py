"""Messages as langchain-core 1.8.2 dumps its own objects with `messages_to_dict`, and what each one is about."""

from __future__ import annotations

from typing import Any

SAMPLES: dict[str, list[Any]] = {
    "a question with a call": [
        {
            "type": "system",
            "data": {
                "content": "Be brief.",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "system",
                "name": None,
                "id": None,
            },
        },
        {
            "type": "human",
            "data": {
                "content": "How cold is Oslo?",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "human",
                "name": "ada",
                "id": "h1",
            },
        },
        {
            "type": "ai",
            "data": {
                "content": "I look.",
                "additional_kwargs": {},
                "response_metadata": {
                    "model_provider": "openai",
                    "model_name": "gpt-5-mini",
                    "finish_reason": "tool_calls",
                },
                "type": "ai",
                "name": None,
                "id": "run--1",
                "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "call_1", "type": "tool_call"}],
                "invalid_tool_calls": [],
                "usage_metadata": {
                    "input_tokens": 9,
                    "output_tokens": 4,
                    "total_tokens": 13,
                    "input_token_details": {"cache_read": 3},
                },
            },
        },
        {
            "type": "tool",
            "data": {
                "content": "4 °C",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "tool",
                "name": "weather",
                "id": "t1",
                "tool_call_id": "call_1",
                "artifact": [{"id": None, "metadata": {"station": 17}, "page_content": "4 °C", "type": "Document"}],
                "status": "success",
            },
        },
        {
            "type": "ai",
            "data": {
                "content": "4 °C.",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "ai",
                "name": None,
                "id": "run--2",
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        },
    ],
    "calls of Anthropic": [
        {
            "type": "human",
            "data": {
                "content": "Oslo and Rome?",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "human",
                "name": None,
                "id": None,
            },
        },
        {
            "type": "ai",
            "data": {
                "content": [
                    {"type": "thinking", "thinking": "Two cities.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
                ],
                "additional_kwargs": {},
                "response_metadata": {
                    "model_provider": "anthropic",
                    "model_name": "claude-haiku-4-5",
                    "stop_reason": "tool_use",
                },
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "toolu_1", "type": "tool_call"}],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        },
        {
            "type": "tool",
            "data": {
                "content": [{"type": "text", "text": "no such city"}],
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "tool",
                "name": None,
                "id": None,
                "tool_call_id": "toolu_1",
                "artifact": None,
                "status": "error",
            },
        },
    ],
    "reasoning of OpenAI": [
        {
            "type": "ai",
            "data": {
                "content": [
                    {
                        "type": "reasoning",
                        "id": "rs_1",
                        "summary": [
                            {"type": "summary_text", "text": "First."},
                            {"type": "summary_text", "text": "Then."},
                        ],
                        "encrypted_content": "ZW5j",
                    },
                    {"type": "text", "text": "Cold.", "annotations": [], "id": "msg_1"},
                ],
                "additional_kwargs": {},
                "response_metadata": {"model_provider": "openai"},
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        }
    ],
    "reasoning beside the content": [
        {
            "type": "ai",
            "data": {
                "content": "Cold.",
                "additional_kwargs": {"reasoning_content": "North.", "refusal": None},
                "response_metadata": {"model_provider": "deepseek"},
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        }
    ],
    "reasoning of Bedrock": [
        {
            "type": "ai",
            "data": {
                "content": [
                    {"type": "reasoning_content", "reasoning_content": {"text": "North.", "signature": "c2ln"}},
                    "Cold.",
                ],
                "additional_kwargs": {},
                "response_metadata": {"model_provider": "bedrock_converse"},
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        }
    ],
    "standard blocks": [
        {
            "type": "human",
            "data": {
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "url": "https://example.org/a.png"},
                    {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png", "extras": {"detail": "low"}},
                    {"type": "audio", "base64": "iVBORw0KGgo=", "mime_type": "audio/wav"},
                    {"type": "video", "file_id": "file-1"},
                    {
                        "type": "file",
                        "base64": "iVBORw0KGgo=",
                        "mime_type": "application/pdf",
                        "extras": {"filename": "a.pdf"},
                    },
                ],
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "human",
                "name": None,
                "id": None,
            },
        },
        {
            "type": "ai",
            "data": {
                "content": [
                    {"type": "reasoning", "reasoning": "A pixel.", "extras": {"signature": "c2ln"}},
                    {"type": "text", "text": "A pixel."},
                ],
                "additional_kwargs": {},
                "response_metadata": {"model_provider": "anthropic", "output_version": "v1"},
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": None,
            },
        },
    ],
    "older and foreign blocks": [
        {
            "type": "human",
            "data": {
                "content": [
                    "Look:",
                    {"type": "image", "source_type": "base64", "data": "iVBORw0KGgo=", "mime_type": "image/png"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                    {"type": "image_url", "image_url": "https://example.org/a.png"},
                    {"type": "input_audio", "input_audio": {"data": "iVBORw0KGgo=", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,iVBORw0KGgo=", "filename": "a.pdf"},
                    },
                    {
                        "type": "image",
                        "source": {"type": "url", "url": "https://example.org/a.png"},
                        "cache_control": {"type": "ephemeral"},
                    },
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "iVBORw0KGgo="},
                        "title": "A",
                    },
                ],
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "human",
                "name": None,
                "id": None,
            },
        }
    ],
    "a call that cannot be run": [
        {
            "type": "ai",
            "data": {
                "content": "",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "ai",
                "name": None,
                "id": None,
                "tool_calls": [{"name": "tides", "args": {}, "id": "call_2", "type": "tool_call"}],
                "invalid_tool_calls": [
                    {
                        "type": "invalid_tool_call",
                        "id": "call_1",
                        "name": "weather",
                        "args": '{"city": "Os',
                        "error": "Expecting value",
                    }
                ],
                "usage_metadata": None,
            },
        }
    ],
    "a developer": [
        {
            "type": "system",
            "data": {
                "content": "Be brief.",
                "additional_kwargs": {"__openai_role__": "developer"},
                "response_metadata": {},
                "type": "system",
                "name": None,
                "id": None,
            },
        }
    ],
    "a chunk": [
        {
            "type": "AIMessageChunk",
            "data": {
                "content": "Cold",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "AIMessageChunk",
                "name": None,
                "id": "run--3",
                "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "call_1", "type": "tool_call"}],
                "invalid_tool_calls": [],
                "usage_metadata": None,
                "tool_call_chunks": [
                    {
                        "name": "weather",
                        "args": '{"city":"Oslo"}',
                        "id": "call_1",
                        "index": 0,
                        "type": "tool_call_chunk",
                    }
                ],
                "chunk_position": "last",
            },
        }
    ],
    "messages of other types": [
        {
            "type": "chat",
            "data": {
                "content": "Hi",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "chat",
                "name": None,
                "id": None,
                "role": "user",
            },
        },
        {
            "type": "chat",
            "data": {
                "content": "It rains.",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "chat",
                "name": None,
                "id": None,
                "role": "narrator",
            },
        },
        {
            "type": "function",
            "data": {
                "content": "4 °C",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "function",
                "name": "weather",
                "id": None,
            },
        },
        {
            "type": "remove",
            "data": {
                "content": "",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "remove",
                "name": None,
                "id": "h1",
            },
        },
    ],
}
