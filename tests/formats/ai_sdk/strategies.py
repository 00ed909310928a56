"""Any UI messages, with unknown keys and parts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.formats.ai_sdk.samples import histories
from tests.formats.openai_chat.strategies import Json, Objects, inner_residuals, json_values, objects, texts
from tests.formats.round_trip import RoundTrip

nullable_texts = st.none() | texts
ids = texts | st.sampled_from(["a", "b"])
metadata = json_values | st.sampled_from(
    [
        {"anthropic": {"signature": "c2ln"}},
        {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j"}},
        {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": None}},
        {"google": {"thoughtSignature": "YQ=="}, "anthropic": {"redactedData": "x"}},
    ]
)
media_types = st.sampled_from(["image/png", "image", "audio", "video/mp4", "application/pdf"]) | texts
urls = texts | st.sampled_from(["https://h/a", "data:image/png;base64,QQ=="])
marks = {"state": st.sampled_from(["streaming", "done"]), "providerMetadata": metadata}


def part_of(kind: str, required: dict[str, Json], optional: dict[str, Json] | None = None) -> Objects:
    return objects({"type": st.just(kind), **required}, optional or {})


text_parts = part_of("text", {"text": texts}, {**marks, "citations": json_values})
reasoning_parts = part_of("reasoning", {"text": texts}, {**marks, "id": texts})
file_parts = part_of(
    "file",
    {"mediaType": media_types, "url": urls},
    {"filename": nullable_texts, "providerReference": json_values, "providerMetadata": metadata},
)
other_parts = st.sampled_from(
    ["source-url", "source-document", "reasoning-file", "custom", "steering-message", "data-chart", "later", ""]
).flatmap(lambda kind: part_of(kind, {}, {"id": json_values, "data": json_values, "parts": json_values}))
step_starts = part_of("step-start", {}) | st.just({"type": "step-start"})
approvals = json_values | st.fixed_dictionaries(
    {"id": texts},
    optional={"approved": st.booleans() | st.none(), "reason": nullable_texts, "signature": texts},
)
calls = st.fixed_dictionaries(
    {"toolCallId": ids},
    optional={
        "input": json_values | st.just({"city": "Oslo"}) | texts,
        "rawInput": nullable_texts,
        "title": texts,
        "approval": approvals,
        "providerExecuted": st.booleans(),
        "callProviderMetadata": metadata,
    },
)
results = st.one_of(
    st.fixed_dictionaries(
        {"state": st.sampled_from(["input-streaming", "input-available", "approval-requested", "approval-responded"])}
    ),
    st.fixed_dictionaries(
        {"state": st.just("output-available")},
        optional={"output": json_values | texts, "preliminary": st.booleans(), "resultProviderMetadata": metadata},
    ),
    st.fixed_dictionaries({"state": st.just("output-error"), "errorText": texts}, optional={"output": json_values}),
    st.fixed_dictionaries({"state": st.just("output-denied")}, optional={"output": json_values, "errorText": texts}),
)
kinds = st.one_of(
    texts.filter(bool).map(lambda name: {"type": f"tool-{name}"}),
    texts.filter(bool).map(lambda name: {"type": "dynamic-tool", "toolName": name}),
)


@st.composite
def tool_parts(draw: st.DrawFn) -> dict[str, Any]:
    known = {**draw(kinds), **draw(calls), **draw(results)}
    later = {"later": draw(json_values)} if draw(st.booleans()) else {}
    entries = list({**known, **later}.items())
    return dict(draw(st.permutations(entries)) if draw(st.booleans()) else entries)


parts = st.one_of(text_parts, reasoning_parts, file_parts, tool_parts(), tool_parts(), other_parts, step_starts)
messages = objects(
    {"role": st.sampled_from(["system", "user", "assistant", "assistant"]), "parts": st.lists(parts, max_size=5)},
    {"id": texts | json_values, "metadata": json_values | st.just({}), "createdAt": texts},
)

misshapen_parts = st.dictionaries(
    st.sampled_from(["type", "text", "state", "toolCallId", "toolName", "errorText", "mediaType", "url", "approval"]),
    json_values | st.sampled_from(["text", "file", "tool-", "tool-a", "dynamic-tool", "output-error", "output-denied"]),
)
misshapen_messages = st.dictionaries(
    st.sampled_from(["id", "role", "parts", "metadata"]),
    json_values | st.sampled_from(["user", "assistant"]) | st.lists(misshapen_parts | parts | json_values, max_size=3),
)
misshapen_payloads: st.SearchStrategy[Any] = json_values | st.lists(
    misshapen_messages | messages | json_values, max_size=2
)

sections = json_values | st.fixed_dictionaries(
    {}, optional={"json": st.just(True), "dynamic": st.just(True), "extra": json_values, "keys": json_values}
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True),
        "id": json_values,
        "head": sections,
        "step": st.just(False) | sections,
        "parts": inner_residuals,
        "calls": inner_residuals | st.just({"0": {"dynamic": True}}),
        "calls_at": st.lists(st.integers(-1, 2), max_size=2) | json_values,
        "call": st.integers(-1, 2) | json_values,
        "part": sections,
        "whole": st.just(True),
    },
)

TRIPS = [
    RoundTrip("ai-sdk", messages, misshapen=misshapen_payloads, residuals=residuals, samples=histories()),
]
