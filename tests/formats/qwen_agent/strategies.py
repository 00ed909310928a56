"""Any valid Qwen-Agent message."""

from __future__ import annotations

from hypothesis import strategies as st

from chatledger.formats.qwen_agent import ContentItem, FunctionCall, Message
from tests.formats.round_trip import RoundTrip, levels_of_dumps

texts = st.text(max_size=4) | st.text(st.characters(codec=None), max_size=3) | st.sampled_from(["\ud800", "\x00"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from([10**30, -0.0, 1e2]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
given_text = texts.filter(bool)
audio_dicts = st.fixed_dictionaries({"data": texts | st.just("https://a.example/b.wav"), "format": texts}, optional={})
items = st.one_of(
    st.builds(ContentItem, text=texts, image=st.sampled_from([None, ""])),
    st.builds(ContentItem, image=given_text),
    st.builds(ContentItem, file=given_text, image=st.sampled_from([None, ""])),
    st.builds(ContentItem, audio=given_text | audio_dicts | objects.filter(bool)),
    st.builds(ContentItem, video=given_text | st.lists(values, min_size=1, max_size=3)),
)
contents = texts | st.lists(items, max_size=3)
extras = objects | st.builds(lambda extra, id_: {**extra, "function_id": id_}, objects, texts | st.just("1"))
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system", "function"]),
    content=contents,
    reasoning_content=st.none() | contents,
    name=st.none() | texts,
    function_call=st.none() | st.builds(FunctionCall, given_text, texts),
    extra=st.none() | extras,
)
rows = st.builds(lambda message, short: message.model_dump(exclude_none=short), messages, st.booleans())

TRIPS = [
    RoundTrip("qwen-agent", messages, rows, levels=levels_of_dumps),
]
