"""Messages as `Message.to_dict` writes them, with contents of every type, unknown keys and keys in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.formats.agent_framework.samples import SAMPLES
from tests.formats.openai_chat.strategies import inner_residuals, json_values, nullable_texts, texts
from tests.formats.round_trip import RoundTrip

properties: st.SearchStrategy[Any] = st.just({}) | st.dictionaries(texts, json_values, max_size=2)
ids = st.sampled_from(["", "a", "b", "rs_1"])
mime_types = st.sampled_from(["image/png", "audio/wav", "video/mp4", "application/pdf", "image/*", "", "text"])
uris = texts | st.sampled_from(
    ["https://h/a.png", "data:image/png;base64,QQ==", "data:application/pdf;base64,QQ==", "data:text/plain,hello"]
)


@st.composite
def objects(draw: st.DrawFn, required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """The keys as the framework orders them, sometimes turned round, with an unknown key or without properties."""
    given = draw(st.fixed_dictionaries(required, optional=optional))
    way = draw(st.sampled_from(["as it is", "as it is", "turned", "more", "bare"]))
    given["additional_properties"] = draw(properties)
    if way == "turned":
        return dict(reversed(list(given.items())))
    if way == "bare":
        del given["additional_properties"]
    return {**given, "later": draw(json_values)} if way == "more" else given


def content(type_: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    return objects({"type": st.just(type_), **required}, optional or {})


text_contents = content("text", {"text": texts}, {"annotations": st.lists(properties, max_size=1)})
thoughts = content(
    "text_reasoning", {}, {"text": nullable_texts, "protected_data": nullable_texts, "status": texts, "id": ids}
)
media = st.sampled_from(["data", "uri"]).flatmap(
    lambda kind: content(
        kind, {"uri": uris}, {"media_type": st.none() | mime_types, "name": nullable_texts, "file_id": nullable_texts}
    )
)
calls = content(
    "function_call",
    {"call_id": ids, "name": st.sampled_from(["weather", "tides"])},
    {
        "arguments": nullable_texts | st.dictionaries(texts, json_values, max_size=2),
        "hosted": st.booleans(),
        "id": ids,
        "informational_only": st.just(True),
    },
)
others = st.sampled_from(["usage", "hosted_file", "mcp_server_tool_call", "function_approval_request", ""]).flatmap(
    lambda kind: content(kind, {}, {"call_id": ids, "output": json_values, "function_call": calls})
)
items = st.one_of(text_contents, text_contents, media, others, texts)


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    """A result as the framework makes one, or one whose text and items do not fit."""
    text = draw(texts)
    fitting = {"result": text, "items": [{"type": "text", "text": text, "additional_properties": {}}]}
    said = draw(
        st.just(fitting)
        | st.fixed_dictionaries({}, optional={"result": texts | json_values, "items": st.lists(items, max_size=3)})
    )
    failed = draw(st.just({}) | st.just({"exception": "FunctionInvocationError"}) | st.just({"exception": None}))
    given: dict[str, Any] = draw(content("function_result", {}, {"call_id": st.none() | ids, "status": texts}))
    return {**given, **failed, **said}


contents = st.one_of(text_contents, text_contents, thoughts, media, calls, results(), others, texts)
roles = st.sampled_from(["system", "user", "assistant", "assistant", "developer", "narrator", "custom", "tool"])
optional_fields: dict[str, Any] = {"author_name": nullable_texts, "message_id": nullable_texts}
mixed = objects(
    {
        "type": st.just("message"),
        "role": roles,
        "contents": st.lists(contents, max_size=4),
    },
    optional_fields,
)
of_results = objects(
    {"type": st.just("message"), "role": st.just("tool"), "contents": st.lists(results(), min_size=1, max_size=3)},
    optional_fields,
)
messages = mixed | of_results
payloads = st.lists(messages, max_size=4)

misshapen_contents = st.dictionaries(
    st.sampled_from(["type", "text", "uri", "media_type", "call_id", "name", "arguments", "result", "items", "id"]),
    json_values
    | st.sampled_from(["text", "text_reasoning", "data", "uri", "function_call", "function_result"])
    | st.lists(contents | json_values, max_size=2),
)
misshapen_messages = st.dictionaries(
    st.sampled_from(["type", "role", "contents", "author_name", "additional_properties"]),
    json_values | roles | st.lists(misshapen_contents | contents | json_values, max_size=2),
)
misshapen_payloads: st.SearchStrategy[Any] = json_values | st.lists(
    misshapen_messages | messages | json_values, max_size=2
)

sections = json_values | st.fixed_dictionaries(
    {},
    optional={
        "json": st.just(True) | json_values,
        "extra": json_values | st.just({"role": "tool", "contents": 1}),
        "keys": json_values | st.just(["type", "role"]),
        "form": st.just("bare"),
    },
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True),
        "head": sections,
        "answer": sections,
        "parts": inner_residuals | st.fixed_dictionaries({"0": sections}),
        "calls": inner_residuals,
        "calls_at": st.lists(st.integers(-1, 2), max_size=2) | json_values,
    },
)

TRIPS = [
    RoundTrip(
        "agent-framework",
        messages,
        misshapen=misshapen_payloads,
        residuals=residuals,
        samples=SAMPLES,
    ),
]
