"""The keys of the objects in a request of the format `openai-chat`, as `keys.py` reads them.

Written by `python -m tests.formats.model_view.request_types` from the types of the SDK.
"""

from __future__ import annotations

TABLE = {
    ".audio": "id",
    ".custom": "input name",
    ".file": "file_data file_id filename",
    ".function": "arguments name",
    ".function_call": "arguments name",
    ".image_url": "detail url",
    ".input_audio": "data format",
    ".prompt_cache_breakpoint": "mode ttl",
    "assistant message": "audio?* content?* function_call?* name refusal? role tool_calls*",
    "custom": "custom* id type",
    "developer message": "content* name role",
    "file": "file* prompt_cache_breakpoint* type",
    "function": "function* id type",
    "function message": "content? name role",
    "image_url": "image_url* prompt_cache_breakpoint* type",
    "input_audio": "input_audio* prompt_cache_breakpoint* type",
    "refusal": "refusal type",
    "system message": "content* name role",
    "text": "prompt_cache_breakpoint* text type",
    "tool message": "content* role tool_call_id",
    "user message": "content* name role",
}
