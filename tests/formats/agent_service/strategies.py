"""Anything that this format can say, and anything that a message of another format can."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from chatledger.formats.agent_service import ChatHistory, ChatMessage
from chatledger.models import AudioPart, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall
from chatledger.models import ChatMessage as LedgerMessage
from tests.formats.round_trip import RoundTrip, levels_with_given_fields

texts = st.text(max_size=8)
names = st.text("abcdefgh", min_size=1, max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(texts, values, max_size=3)

types = st.sampled_from(["human", "ai", "tool", "custom"])

calls = st.fixed_dictionaries(
    {"name": names, "args": objects, "id": st.none() | texts}, optional={"type": st.just("tool_call")}
)

fields: dict[str, st.SearchStrategy[Any]] = {
    "tool_calls": st.lists(calls, max_size=3),
    "tool_call_id": st.none() | texts,
    "run_id": st.none() | texts.filter(bool),
    "response_metadata": objects,
    "custom_data": objects,
}

given_fields = st.fixed_dictionaries({"type": types, "content": texts}, optional=fields)

chat_messages = given_fields.map(lambda given: ChatMessage(**given))


def shuffled(row: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """The same keys in any order, with some unknown keys."""
    unknown = st.dictionaries(texts.map("x-{}".format), values, max_size=2)
    merged = st.tuples(row, unknown).map(lambda pair: list({**pair[0], **pair[1]}.items()))
    return merged.flatmap(st.permutations).map(dict)


rows = shuffled(
    st.fixed_dictionaries(
        {"type": types, "content": texts}, optional={**fields, "tool_calls": st.lists(shuffled(calls), max_size=3)}
    )
)

histories = st.lists(rows, min_size=1, max_size=3).flatmap(
    lambda messages: shuffled(st.just({"messages": messages})),
)

histories_of_objects = st.lists(chat_messages, min_size=1, max_size=4).map(
    lambda messages: ChatHistory(messages=messages)
)

extras = st.none() | objects
parts = st.one_of(
    st.builds(TextPart, text=texts, extras=extras),
    st.builds(ThinkPart, text=texts, signature=st.none() | texts),
    st.builds(ImagePart, url=texts),
    st.builds(AudioPart, data=texts, mime_type=st.just("audio/wav")),
    st.builds(OpaquePart, type=names, value=values),
)
contents = st.none() | texts | st.lists(parts, max_size=3)
arguments = st.none() | objects | texts | st.sampled_from(['{"a": 1}', "[1]", "{", '{"a":1,"a":2}', "null"])

foreign_messages = st.builds(
    LedgerMessage,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool", "custom"]),
    content=contents,
    reasoning=st.none() | texts,
    name=st.none() | names,
    tool_calls=st.none()
    | st.lists(st.builds(ToolCall, id=st.none() | texts, name=names, arguments=arguments, extras=extras)),
    tool_call_id=st.none() | texts,
    is_error=st.none() | st.booleans(),
    run_id=st.none() | texts,
    state=st.sampled_from(["complete", "interrupted"]),
    response_metadata=extras,
    custom_data=extras | st.just({"role": "user"}) | st.just({"chatledger": 1}),
    format=st.none() | st.just("openai-chat"),
    residual=st.none() | objects,
)

TRIPS = [
    RoundTrip(
        "agent-service",
        chat_messages,
        rows,
        levels_with_given_fields,
        around=lambda rows: {"messages": rows},
        inside=lambda history: history.messages,
        whole=histories | histories_of_objects,
    ),
]
