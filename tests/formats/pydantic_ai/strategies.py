"""Any history that Pydantic AI writes, with unknown keys and parts."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from tests.formats.openai_chat.strategies import Json, Objects, inner_residuals, json_values, objects, texts
from tests.formats.pydantic_ai.samples import history
from tests.formats.round_trip import RoundTrip

nullable_texts = st.none() | texts
stamps = {"timestamp": nullable_texts | st.just("2026-11-01T12:00:00.123456Z")}
provided = {"id": nullable_texts, "provider_name": nullable_texts, "provider_details": json_values}
data = st.binary(max_size=4).flatmap(
    lambda raw: st.sampled_from([base64.b64encode(raw), base64.urlsafe_b64encode(raw)]).map(bytes.decode)
)
mime_types = st.sampled_from(["image/png", "audio/wav", "video/mp4", "application/pdf"]) | texts
known_as = {"identifier": texts, "vendor_metadata": json_values}


def part_of(kind: str, required: dict[str, Json], optional: dict[str, Json] | None = None) -> Objects:
    return objects({"part_kind": st.just(kind), **required}, optional or {})


def item_of(kind: str, required: dict[str, Json], optional: dict[str, Json] | None = None) -> Objects:
    return objects({"kind": st.just(kind), **required}, {**known_as, **(optional or {})})


binaries = item_of("binary", {"data": data | texts, "media_type": mime_types})
urls = st.sampled_from(["image-url", "audio-url", "video-url", "document-url"]).flatmap(
    lambda kind: item_of(
        kind, {"url": texts | st.just("https://h/a")}, {"media_type": st.none() | mime_types, "force_download": texts}
    )
)
others = st.sampled_from(["cache-point", "uploaded-file", "later"]).flatmap(
    lambda kind: item_of(kind, {}, {"ttl": texts, "file_id": json_values, "url": json_values})
)
contents = st.sampled_from(["text-content", "structured-content"]).flatmap(
    lambda kind: item_of(kind, {"content": texts}, {"metadata": json_values, "value": json_values, "tag": texts})
)
items = st.one_of(texts, binaries, urls, others, contents)
digests: st.SearchStrategy[Any] = st.just([]) | st.lists(texts, max_size=1) | json_values

system_parts = part_of(
    "system-prompt",
    {"content": texts},
    {**stamps, "dynamic_ref": nullable_texts, "scope": st.sampled_from(["conversation", "request"])},
)
user_parts = part_of("user-prompt", {"content": texts | st.lists(items, max_size=3)}, stamps)
returns = part_of(
    "tool-return",
    {
        "tool_name": texts,
        "content": texts | json_values | binaries | urls | st.lists(texts | binaries | urls | json_values, max_size=2),
    },
    {
        **stamps,
        "tool_call_id": nullable_texts | st.sampled_from(["a", "b"]),
        "outcome": st.sampled_from(["success", "failed", "denied", "interrupted", "retried"]),
        "metadata": json_values,
        "content_file_digests": digests,
    },
)
retries = part_of(
    "retry-prompt", {"content": texts | json_values}, {**stamps, "tool_name": nullable_texts, "tool_call_id": texts}
)
feedback = part_of("retry-feedback", {"content": texts | json_values, "retry": json_values}, stamps)
deltas = st.sampled_from(["instruction-delta", "compaction", "speech", "later", ""]).flatmap(
    lambda kind: part_of(kind, {}, {"content": json_values, "id": json_values})
)
request_parts = st.one_of(system_parts, user_parts, user_parts, returns, returns, retries, feedback, deltas)

text_parts = part_of("text", {"content": texts}, {**provided, "citations": json_values})
thinking_parts = part_of("thinking", {"content": texts}, {**provided, "signature": nullable_texts})
file_parts = part_of("file", {"content": binaries}, provided)
calls = part_of(
    "tool-call",
    {"tool_name": texts.filter(bool)},
    {
        **provided,
        "args": nullable_texts | st.dictionaries(texts, json_values, max_size=2),
        "tool_call_id": nullable_texts | st.sampled_from(["a", "b"]),
    },
)
native_parts = st.sampled_from(["builtin-tool-call", "builtin-tool-return", "compaction", "later"]).flatmap(
    lambda kind: part_of(kind, {}, {"tool_name": texts, "content": json_values})
)
response_parts = st.one_of(text_parts, text_parts, thinking_parts, calls, calls, file_parts, native_parts)

told = {
    **stamps,
    "run_id": nullable_texts,
    "conversation_id": nullable_texts,
    "metadata": st.none() | st.dictionaries(texts, json_values, max_size=1),
    "state": st.sampled_from(["complete", "incomplete", "suspended", "interrupted"]),
}
requests = objects(
    {"kind": st.just("request"), "parts": st.lists(request_parts, max_size=3)}, {**told, "instructions": nullable_texts}
)
responses = objects(
    {"kind": st.just("response"), "parts": st.lists(response_parts, max_size=4)},
    {
        **told,
        "usage": json_values | st.fixed_dictionaries({"input_tokens": st.integers(0, 3)}),
        "model_name": nullable_texts,
        "provider_name": nullable_texts,
        "finish_reason": nullable_texts | st.just("stop"),
    },
)
messages = requests | responses
payloads = st.lists(messages, max_size=4)

misshapen_parts = st.dictionaries(
    st.sampled_from(["part_kind", "content", "tool_name", "tool_call_id", "args", "outcome", "signature"]),
    json_values
    | st.sampled_from(["text", "thinking", "tool-call", "tool-return", "user-prompt", "system-prompt", "file"])
    | st.lists(items | json_values, max_size=2),
)
misshapen_messages = st.dictionaries(
    st.sampled_from(["kind", "parts", "usage", "timestamp"]),
    json_values
    | st.sampled_from(["request", "response"])
    | st.lists(misshapen_parts | request_parts | response_parts | json_values, max_size=2),
)
misshapen_payloads: st.SearchStrategy[Any] = json_values | st.lists(
    misshapen_messages | messages | json_values, max_size=2
)

sections = json_values | st.fixed_dictionaries(
    {},
    optional={
        "kind": json_values | st.sampled_from(["retry-prompt", "retry-feedback", "text-content"]),
        "json": st.just(True) | json_values,
        "single": st.just(True) | json_values,
        "standard": st.just(True),
        "given": json_values | st.just({"timestamp": 1, "identifier": None}),
        "extra": json_values,
        "keys": json_values,
    },
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True),
        "head": sections,
        "part": sections,
        "parts": inner_residuals | st.just({"0": {"kind": "text-content"}}),
        "calls": inner_residuals,
        "calls_at": st.lists(st.integers(-1, 2), max_size=2) | json_values,
        "whole": st.just(True),
        "empty": st.just(True),
    },
)

TRIPS = [
    RoundTrip(
        "pydantic-ai",
        messages,
        misshapen=misshapen_payloads,
        residuals=residuals,
        samples={"a history": history()},
    ),
]
