"""Any item that the Responses API accepts or returns, with unknown keys; and the shapes of a payload."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.formats.openai_chat.strategies import (
    Json,
    Objects,
    inner_residuals,
    json_values,
    nullable_texts,
    objects,
    texts,
)
from tests.formats.round_trip import RoundTrip

ROLES = ["system", "developer", "user", "assistant"]

details = st.sampled_from([None, "auto", "low", "high"])
file_data = nullable_texts | st.just("data:a/b;base64,QQ==")


def typed(kind: str, required: dict[str, Json] | None = None, optional: dict[str, Json] | None = None) -> Objects:
    return objects({"type": st.just(kind), **(required or {})}, optional or {})


audio = objects({"data": texts}, {"format": nullable_texts | st.sampled_from(["wav", "mp3"])})
parts = st.one_of(
    typed("input_text", {"text": texts}),
    typed("output_text", {"text": texts}, {"annotations": st.just([]) | json_values, "logprobs": json_values}),
    typed("refusal", {"refusal": texts}),
    typed("text", {"text": texts}),
    typed("input_image", {}, {"image_url": nullable_texts, "file_id": nullable_texts, "detail": details}),
    typed("input_file", {}, {"file_data": file_data, "file_id": texts, "file_url": nullable_texts, "filename": texts}),
    typed("input_audio", {"input_audio": audio}),
    objects({}, {"type": json_values}),
)
contents = texts | st.lists(parts, max_size=3)
easy_messages = st.fixed_dictionaries({"role": st.sampled_from(ROLES), "content": texts})
typed_messages = objects(
    {"role": st.sampled_from(ROLES)},
    {
        "content": st.none() | contents,
        "type": st.just("message"),
        "id": nullable_texts,
        "status": st.sampled_from([None, "completed", "incomplete"]),
        "phase": st.sampled_from([None, "commentary", "final_answer"]),
    },
)
summaries = st.lists(
    typed("summary_text", {"text": texts}) | st.just({"type": "summary_text", "text": "Hm"}), max_size=3
)
thoughts = st.lists(st.fixed_dictionaries({"type": st.just("reasoning_text"), "text": texts}), max_size=2)
reasoning = typed(
    "reasoning",
    {"summary": summaries},
    {"id": texts, "content": st.none() | thoughts | json_values, "encrypted_content": nullable_texts, "status": texts},
)
names = st.sampled_from(["f", "search", "\ud800"])
call_ids = nullable_texts | st.sampled_from(["call_0", "call_1"])
arguments = nullable_texts | st.dictionaries(texts, json_values, max_size=2)
calls = st.one_of(
    typed(
        "function_call", {"name": names}, {"arguments": arguments, "call_id": call_ids, "id": texts, "status": texts}
    ),
    typed("custom_tool_call", {"name": names}, {"input": arguments, "call_id": call_ids, "id": texts}),
)
outputs = st.one_of(
    typed("function_call_output", {}, {"call_id": call_ids, "output": st.none() | contents, "id": texts}),
    typed("custom_tool_call_output", {}, {"call_id": call_ids, "output": st.none() | contents}),
)
built_in = st.sampled_from(
    ["web_search_call", "computer_call_output", "shell_call", "mcp_approval_response", "compaction", "of tomorrow"]
).flatmap(lambda kind: typed(kind, {"id": texts}, {"action": json_values, "encrypted_content": texts}))
references = objects({"id": texts}, {"type": st.none() | st.just("item_reference")})
items = st.one_of(easy_messages, typed_messages, reasoning, calls, outputs, built_in, references)
lists = st.lists(items, max_size=5)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Json]:
    """`{"instructions", "input"}` in any order, either of them absent, null, a text or items; never nothing at all."""
    said = {"instructions": nullable_texts, "input": texts | st.lists(items, min_size=1, max_size=4)}
    given = draw(st.fixed_dictionaries({}, optional=said).filter(_says_something))
    return dict(draw(st.permutations(list(given.items()))))


def _says_something(given: dict[str, Json]) -> bool:
    return given.get("instructions") is not None or "input" in given


payloads = lists | requests() | texts

misshapen_items = st.dictionaries(
    st.sampled_from(["type", "role", "content", "name", "call_id", "summary", "output", "arguments", "id"]),
    json_values
    | st.sampled_from(
        ["user", "message", "function_call", "reasoning", [{"type": "input_text"}], [{"type": "refusal"}]]
    ),
)
forms = st.sampled_from(["function_call", "custom_tool_call", "custom_tool_call_output", []])
numbers = st.none() | st.integers(-1, 2)
entries = st.fixed_dictionaries(
    {"kind": st.sampled_from(["message", "call", "output", "opaque", "reasoning", "instructions"]) | json_values},
    optional={
        "take": numbers | json_values,
        "form": forms | json_values,
        "kept": inner_residuals,
        "parts": inner_residuals,
        "summary": st.lists(numbers, max_size=2) | json_values,
    },
)
shapes = st.dictionaries(
    st.sampled_from(["keys", "text"]), json_values | st.just(["instructions", "input"]) | st.just(True)
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={"items": json_values | st.lists(entries, max_size=3) | inner_residuals, "payload": shapes | json_values},
)
misshapen_payloads: st.SearchStrategy[Json] = json_values | st.lists(misshapen_items | items | json_values, max_size=3)

TRIPS = [
    RoundTrip(
        "openai-responses",
        items,
        whole=requests() | texts,
        misshapen=misshapen_payloads,
        residuals=residuals,
    ),
]
