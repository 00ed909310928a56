"""Messages as `message_to_dict` writes them, with blocks in every spelling, unknown keys and keys in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.formats.langchain.samples import SAMPLES
from tests.formats.round_trip import RoundTrip

texts = st.text(max_size=4) | st.sampled_from(["", "a", "\x00", "\ud800", "{", "Oslo\n\n"])
maybe_text = st.none() | texts
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(width=16) | texts
_values: Any = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=3
)


def named(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The same with a short name: Hypothesis warns of a strategy whose name is very long."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return drawn()


values = named(_values)
objects = st.dictionaries(texts | st.sampled_from(["signature", "filename", "detail"]), values, max_size=2)
ids = st.none() | st.sampled_from(["", "call_1", "call_2"])


def shuffled(source: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """The same keys, sometimes in another order and with an unknown one."""

    @st.composite
    def drawn(draw: st.DrawFn) -> dict[str, Any]:
        given = draw(source)
        way = draw(st.sampled_from(["as it is", "as it is", "turned", "more"]))
        if way == "turned":
            return dict(reversed(list(given.items())))
        return {**given, "later": draw(values)} if way == "more" else given

    return drawn()


def block(type_: str, /, optional: dict[str, Any] | None = None, **required: Any) -> st.SearchStrategy[dict[str, Any]]:
    return shuffled(st.fixed_dictionaries({"type": st.just(type_), **required}, optional=optional or {}))


def medium(kind: str) -> st.SearchStrategy[Any]:
    data: Any = {"mime_type": st.just("image/png")}
    more: Any = {"id": texts, "index": st.integers(0, 2), "extras": objects}
    return st.one_of(
        block(kind, more, url=texts),
        block(kind, more, base64=texts, **data),
        block(kind, more, file_id=texts),
        block(kind, source_type=st.just("url"), url=texts),
        block(kind, source_type=st.just("base64"), data=texts, **data),
        block(kind, source_type=st.just("id"), id=texts),
    )


def source_of(type_: str) -> st.SearchStrategy[Any]:
    return block(
        type_,
        {"cache_control": objects},
        source=block("base64", data=texts, media_type=st.just("image/png"))
        | block("url", url=texts)
        | block("file", file_id=texts)
        | block("text", data=texts),
    )


summaries = st.lists(block("summary_text", text=texts), max_size=3)
_blocks = st.one_of(
    texts,
    block("text", {"annotations": st.lists(objects, max_size=1), "index": st.integers(0, 2)}, text=texts),
    block("thinking", {"signature": maybe_text, "index": st.integers(0, 2)}, thinking=texts),
    block("reasoning", {"signature": texts, "encrypted_content": texts, "extras": objects}, reasoning=texts),
    block("reasoning", {"id": texts, "encrypted_content": maybe_text}, summary=summaries),
    block("reasoning_content", reasoning_content=st.fixed_dictionaries({"text": texts}, optional={"signature": texts})),
    block("redacted_thinking", data=texts),
    block("tool_use", id=texts, name=texts, input=objects),
    *map(medium, ("image", "audio", "video", "file")),
    source_of("image"),
    source_of("document"),
    block("image_url", image_url=texts | st.fixed_dictionaries({"url": texts}, optional={"detail": maybe_text})),
    block("input_audio", input_audio=st.fixed_dictionaries({"data": texts, "format": st.sampled_from(["wav", "mp3"])})),
    block("file", file=st.fixed_dictionaries({"file_data": texts}, optional={"filename": texts, "file_id": texts})),
    block("non_standard", value=objects),
    objects,
)
blocks = named(_blocks)
contents = texts | st.lists(blocks, max_size=3)
kwargs: Any = st.just({}) | objects | st.builds(lambda text, more: {**more, "reasoning_content": text}, texts, objects)
names = st.sampled_from(["weather", "tides"])
calls = shuffled(
    st.fixed_dictionaries({"name": names, "args": objects, "id": ids, "type": st.just("tool_call")}),
)
invalid_calls = shuffled(
    st.fixed_dictionaries(
        {"type": st.just("invalid_tool_call"), "id": ids, "name": names, "args": maybe_text, "error": maybe_text}
    )
)
usages = st.none() | st.just({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})


def message(type_: str, /, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    data = shuffled(
        st.fixed_dictionaries(
            {
                "content": contents,
                "additional_kwargs": kwargs,
                "response_metadata": st.just({}) | st.just({"model_provider": "anthropic"}) | objects,
                "type": st.just(type_),
                "name": maybe_text,
                "id": maybe_text,
                **fields,
            }
        )
    )
    return shuffled(st.fixed_dictionaries({"type": st.just(type_), "data": data}))


_AI: dict[str, Any] = {
    "tool_calls": st.lists(calls, max_size=2),
    "invalid_tool_calls": st.lists(invalid_calls, max_size=1),
    "usage_metadata": usages,
}
_messages = st.one_of(
    message("human"),
    message("system", additional_kwargs=st.just({}) | st.just({"__openai_role__": "developer"})),
    message("ai", **_AI),
    message("AIMessageChunk", **_AI, tool_call_chunks=st.lists(objects, max_size=1), chunk_position=st.none()),
    message("tool", tool_call_id=st.just("call_1"), artifact=values, status=st.sampled_from(["success", "error"])),
    message("function", name=names),
    message("chat", role=st.sampled_from(["user", "assistant", "developer", "narrator", "tool", "custom"])),
    message("remove"),
    message("of_tomorrow", topic=texts),
)
messages = named(_messages)

TRIPS = [
    RoundTrip("langchain", messages, samples=SAMPLES),
]
