"""Any message that a chat completions API accepts or returns, with unknown keys."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.formats.round_trip import RoundTrip

Json = Any
Objects = st.SearchStrategy[dict[str, Json]]

texts = st.text(st.characters(), max_size=8)  # with NUL and lone surrogates
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), texts, st.floats(), st.sampled_from([float("nan"), -0.0, 10**30, 1e2])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=4
)
unknown_keys = texts | st.sampled_from(["keys", "extra", "inner", "form", "parts", "calls", "spelled", "cache_control"])


@st.composite
def objects(draw: st.DrawFn, required: dict[str, Json], optional: dict[str, Json]) -> dict[str, Json]:
    """An object with unknown keys, in any order."""
    known = draw(st.fixed_dictionaries(required, optional=optional))
    unknown = draw(st.dictionaries(unknown_keys, json_values, max_size=1))
    kept = {key: value for key, value in unknown.items() if key not in required and key not in optional}
    return dict(draw(st.permutations([*known.items(), *kept.items()])))


def envelopes(kind: str, inner: Json, optional: dict[str, Json] | None = None) -> Objects:
    return objects({"type": st.just(kind), kind: inner}, optional or {})


nullable_texts = st.none() | texts
named = {"name": texts.filter(bool)}
thoughts = texts | st.lists(envelopes("text", texts) | json_values, max_size=2)
parts = st.one_of(
    envelopes("text", texts),
    envelopes("refusal", texts),
    envelopes("image_url", texts | objects({"url": texts}, {"detail": nullable_texts})),
    envelopes("input_audio", objects({"data": texts}, {"format": nullable_texts | st.sampled_from(["wav", "mp3"])})),
    envelopes(
        "file",
        objects(
            {}, {"file_data": nullable_texts | st.just("data:a/b;base64,QQ=="), "file_id": texts, "filename": texts}
        ),
    ),
    objects(
        {"type": st.just("thinking"), "thinking": thoughts}, {"signature": nullable_texts, "closed": st.booleans()}
    ),
    envelopes("video_url", objects({"url": texts}, {})),
    objects({}, {"type": json_values}),
)
functions = objects(named, {"arguments": nullable_texts | st.dictionaries(texts, json_values, max_size=2)})
calls = st.one_of(
    objects({"function": functions}, {"id": nullable_texts, "type": st.sampled_from(["function", None])}),
    envelopes("custom", objects(named, {"input": texts}), {"id": texts}),
    objects({"type": st.sampled_from(["mcp", "id", "type", "web_search"])}, {"id": texts, "mcp": json_values}),
)
messages = objects(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
    {
        "content": nullable_texts | st.lists(parts, max_size=3),
        "name": nullable_texts,
        "tool_call_id": nullable_texts,
        "tool_calls": st.none() | st.lists(calls, max_size=2),
        "function_call": st.none() | functions,
        "reasoning_content": nullable_texts,
        "reasoning": nullable_texts | st.lists(json_values, max_size=1),
        "refusal": nullable_texts,
        "audio": json_values | objects({"id": texts, "transcript": nullable_texts}, {"data": texts}),
    },
)

misshapen_messages = st.dictionaries(
    st.sampled_from(["role", "content", "name", "tool_calls", "function_call", "tool_call_id", "reasoning"]),
    json_values
    | st.sampled_from(["user", "tool", [{"type": "text"}], [{"type": "file", "file": 0}], [{"function": {"name": 1}}]]),
)
misshapen_payloads: st.SearchStrategy[Json] = json_values | st.lists(misshapen_messages | json_values, max_size=2)

inner_residuals = json_values | st.dictionaries(st.sampled_from(["keys", "extra", "inner", "form"]), json_values)
residuals = json_values | st.dictionaries(
    st.sampled_from(["keys", "extra", "parts", "calls", "spelled"]),
    json_values | st.dictionaries(st.sampled_from(["0", "1", "tool_calls", "reasoning", "role"]), inner_residuals),
)

TRIPS = [
    RoundTrip(
        "openai-chat",
        messages,
        misshapen=misshapen_payloads,
        residuals=residuals,
    ),
]
