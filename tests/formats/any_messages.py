"""Any canonical message, whatever format or program it may come from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from chatledger.formats import format_names, get_codec
from chatledger.models import (
    LENIENT,
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from tests.formats.round_trips import ROUND_TRIPS, RoundTrip, dumped

texts = st.text(max_size=4) | st.sampled_from(["", "a", "b", "ab", "\x00", "\ud800", "]"])
maybe_text = st.none() | texts
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(width=16) | texts
values: Any = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=3
)
objects = st.dictionaries(texts | st.sampled_from(["role", "chatledger", "frames", "detail"]), values, max_size=2)
extras = st.none() | objects | st.just({"frames": ["a", "b"]}) | st.just({"detail": "low"})
urls = st.none() | st.sampled_from(["", "u", "https://h/a", "data:image/png;base64,QQ==", "data:a,b"])
media = {
    "url": urls,
    "data": st.none() | st.sampled_from(["", "QQ==", "Qg=="]),
    "mime_type": st.none() | st.sampled_from(["", "image/png", "audio/wav", "audio/mpeg", "a"]),
    "name": maybe_text,
    "id": maybe_text,
    "extras": extras,
}
parts: Any = st.one_of(
    st.builds(TextPart, text=texts, extras=st.none() | extras),
    st.builds(ThinkPart, text=texts, signature=maybe_text, extras=st.none() | extras),
    *(st.builds(kind, **media) for kind in (ImagePart, AudioPart, VideoPart, FilePart)),
    st.builds(OpaquePart, type=maybe_text, value=values | objects.map(lambda value: {**value, "type": "later"})),
)
contents = st.none() | texts | st.lists(parts, max_size=3)
ids = st.none() | st.sampled_from(["", "1", "call_0", "call_1_0"]) | texts
arguments = st.none() | objects | st.sampled_from(["", "{}", '{"a": 1}', "[1]", "{", '{"a":1,"a":2}', "null", "1e400"])
calls = st.builds(ToolCall, id=ids, name=st.sampled_from(["f", "g", ""]), arguments=arguments, extras=extras)
roles = st.sampled_from(
    ["system", "developer", "user", "assistant", "assistant", "tool", "custom", "function", "", "X"]
)
added = st.fixed_dictionaries(
    {},
    optional={
        "is_error": st.booleans(),
        "run_id": st.sampled_from(["r", "s", ""]),
        "state": st.sampled_from(["partial", "interrupted", "synthetic"]),
        "response_metadata": objects,
        "custom_data": objects | st.just({"role": "system"}),
    },
)
"""What a program or the ledger may set on any message."""

fields = st.fixed_dictionaries(
    {"role": roles},
    optional={
        "content": contents,
        "reasoning": contents,
        "name": maybe_text | st.just("f"),
        "tool_calls": st.none() | st.lists(calls, max_size=2),
        "tool_call_id": ids,
        "residual": values | st.just({"keys": ["role"], "extra": {}, "dict": True, "partial": True}),
    },
)


def foreign(target: str) -> st.SearchStrategy[ChatMessage]:
    """Messages that no reader made, of any format but one, or of none."""
    formats = st.none() | st.sampled_from(["later/2", *(name for name in format_names() if name != target)])
    made = st.tuples(fields, added, formats).map(lambda given: {**given[0], **given[1], "format": given[2]})
    return made.map(lambda given: ChatMessage.model_validate(given, context=LENIENT))


def read(trip: RoundTrip) -> st.SearchStrategy[list[ChatMessage]]:
    """Messages as the reader of a format makes them, with what a program may add."""
    rows = st.lists(trip.messages.map(dumped), min_size=1, max_size=2)
    payloads = rows.map(trip.around)
    messages = payloads.map(lambda payload: get_codec(trip.format).decode(payload, rules="lenient").messages)
    return st.tuples(messages, st.lists(st.just({}) | added, min_size=1, max_size=2)).map(lambda pair: _with(*pair))


def _with(messages: list[ChatMessage], additions: list[dict[str, Any]]) -> list[ChatMessage]:
    turns = [additions[index % len(additions)] for index in range(len(messages))]
    return [message.model_copy(update=changes) for message, changes in zip(messages, turns, strict=True)]


def conversations(target: str) -> st.SearchStrategy[list[ChatMessage]]:
    """Some messages of any origin in a row, numbered as a thread numbers them."""
    runs = st.one_of(foreign(target).map(lambda message: [message]), *map(read, ROUND_TRIPS))
    return st.lists(runs, max_size=3).map(lambda found: numbered([message for run in found for message in run]))


def numbered(messages: list[ChatMessage]) -> list[ChatMessage]:
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
