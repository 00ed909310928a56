"""Any request that the Messages API takes, and any reply that it gives, with keys and blocks that nobody knows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.formats.openai_chat.strategies import Json, Objects, json_values, scalars, texts
from tests.formats.openai_chat.strategies import objects as objects_of
from tests.formats.round_trip import RoundTrip

nullable_texts = st.none() | texts
caching = {"cache_control": st.none() | st.just({"type": "ephemeral", "ttl": "1h"})}
citing = {"citations": st.none() | st.lists(st.dictionaries(texts, scalars, max_size=1), max_size=1)}


def objects(required: dict[str, Json], optional: dict[str, Json] | None = None) -> Objects:
    return objects_of(required, optional or {})


def blocks_of(kind: str, required: dict[str, Json], optional: dict[str, Json] | None = None) -> Objects:
    return objects({"type": st.just(kind), **required}, {**caching, **(optional or {})})


data_sources = objects({"type": st.just("base64"), "media_type": texts | st.just("image/png"), "data": texts})
url_sources = objects({"type": st.just("url"), "url": texts})
file_sources = objects({"type": st.just("file"), "file_id": texts})
other_sources = objects(
    {"type": st.sampled_from(["text", "content", "later"])}, {"data": texts, "content": json_values}
)
sources = st.one_of(data_sources, url_sources, file_sources, other_sources)

text_blocks = blocks_of("text", {"text": texts}, citing)
media_blocks = st.one_of(
    blocks_of("image", {"source": sources}),
    blocks_of("document", {"source": sources}, {"title": nullable_texts, "context": texts, "citations": json_values}),
)
server_blocks = st.sampled_from(
    ["server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result", "compaction", "container_upload"]
).flatmap(lambda kind: blocks_of(kind, {}, {"id": texts, "input": json_values, "content": json_values}))
thinking_blocks = st.one_of(
    objects({"type": st.just("thinking"), "thinking": texts}, {"signature": nullable_texts}),
    objects({"type": st.just("redacted_thinking"), "data": texts}),
)
plain_blocks = st.one_of(text_blocks, text_blocks, media_blocks, server_blocks)
results = blocks_of(
    "tool_result",
    {"tool_use_id": texts | st.sampled_from(["a", "b"])},
    {
        "content": nullable_texts | st.lists(text_blocks | media_blocks, max_size=2),
        "is_error": st.none() | st.booleans(),
    },
)
calls = blocks_of(
    "tool_use",
    {
        "id": texts | st.sampled_from(["a", "b"]),
        "name": texts.filter(bool),
        "input": texts | st.dictionaries(texts, json_values, max_size=2),
    },
    {"caller": json_values},
)

user_messages = objects(
    {"role": st.just("user"), "content": texts | st.lists(plain_blocks | results | results, max_size=4)}
)
assistant_messages = objects(
    {
        "role": st.just("assistant"),
        "content": texts | st.lists(plain_blocks | thinking_blocks | calls, max_size=4),
    }
)
replies = objects(
    {
        "id": texts,
        "type": st.just("message"),
        "role": st.just("assistant"),
        "content": st.lists(plain_blocks | thinking_blocks | calls, max_size=3),
        "stop_reason": nullable_texts,
        "usage": st.dictionaries(texts, st.integers(), max_size=2),
    }
)
prompts = texts | st.lists(text_blocks, max_size=2)
late_prompts = objects({"role": st.just("system"), "content": prompts | st.lists(server_blocks, max_size=1)})
messages = st.one_of(user_messages, user_messages, assistant_messages, assistant_messages, replies, late_prompts)
payloads: st.SearchStrategy[dict[str, Any]] = st.one_of(
    objects({"messages": st.lists(messages, min_size=1, max_size=4)}, {"system": prompts}),
    objects({"messages": st.lists(messages, max_size=2), "system": prompts}, {"model": texts, "tools": json_values}),
)

misshapen_blocks = st.dictionaries(
    st.sampled_from(["type", "text", "source", "id", "name", "input", "tool_use_id", "content", "thinking", "title"]),
    json_values | st.sampled_from(["text", "image", "tool_use", "tool_result", "thinking", {"type": "url"}]),
)
misshapen_messages = st.dictionaries(
    st.sampled_from(["role", "content", "type", "id"]),
    json_values
    | st.sampled_from(["user", "assistant", "system", "tool", "custom"])
    | st.lists(misshapen_blocks | plain_blocks | json_values, max_size=2),
)
misshapen_payloads: st.SearchStrategy[Any] = st.one_of(
    st.lists(misshapen_messages, max_size=2),
    st.dictionaries(
        st.sampled_from(["system", "messages", "model", ""]),
        st.lists(misshapen_messages | messages, max_size=2) | json_values,
    ),
)

of_part = st.dictionaries(st.sampled_from(["keys", "extra", "source"]), json_values | st.just(["type", "text", "x"]))
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True) | json_values,
        "listed": st.just(True) | json_values,
        "parts": st.dictionaries(st.sampled_from(["0", "1"]), of_part) | json_values,
        "calls": st.dictionaries(st.sampled_from(["0", "1"]), of_part) | json_values,
        "block": of_part | json_values,
        "calls_at": st.lists(st.integers(-1, 3), max_size=2) | json_values,
        "rest_at": st.lists(st.integers(-1, 3), max_size=2) | json_values,
        "null": st.sampled_from(["null", "absent"]) | json_values,
        "keys": st.lists(st.sampled_from(["role", "content", "type", "x"])) | json_values,
        "extra": st.dictionaries(st.sampled_from(["role", "content", "type", "x"]), json_values) | json_values,
        "payload": st.fixed_dictionaries(
            {
                "keys": st.lists(st.sampled_from(["messages", "system", "x"])),
                "extra": st.dictionaries(st.text(), json_values),
            }
        )
        | json_values,
    },
)

TRIPS = [
    RoundTrip(
        "anthropic",
        messages,
        around=lambda rows: {"messages": rows},
        whole=payloads,
        misshapen=misshapen_payloads,
        residuals=residuals,
    ),
]
