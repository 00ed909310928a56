"""Any response, cut into any events: the assembled response is read like the whole response."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from chatledger.formats import get_codec
from chatledger.formats.streams import stream_names
from chatledger.models import ChatMessage, TextPart, ThinkPart
from tests.formats.anthropic import strategies as anthropic
from tests.formats.openai_chat import strategies as chat
from tests.formats.openai_responses import strategies as responses
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.reading import Cut, Json, Object, assembled, decoded, fed
from tests.formats.streams.sdk_examples import example
from tests.formats.streams.test_coverage import ITEMS

texts = st.text(st.characters(), max_size=8)
Draw = st.DrawFn


def cut_by(draw: Draw) -> Cut:
    """Cuts a text anywhere, also into empty pieces."""

    def cut(text: str) -> list[str]:
        marks = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        return [text[start:end] for start, end in zip([0, *marks], [*marks, len(text)], strict=True)]

    return cut


def mixed(draw: Draw, lists: list[list[Object]]) -> list[Object]:
    """The events of all lists, in any order that keeps the order within each."""
    order = draw(st.permutations([number for number, events in enumerate(lists) for _ in events]))
    iterators = [iter(events) for events in lists]
    return [next(iterators[number]) for number in order]


# --- Anthropic --------------------------------------------------------------------------------------------------------

server_calls = anthropic.objects(
    {
        "type": st.sampled_from(["server_tool_use", "mcp_tool_use"]),
        "id": texts,
        "name": texts,
        "input": st.dictionaries(texts, chat.json_values, max_size=2),
    }
)
calls = anthropic.objects(
    {
        "type": st.just("tool_use"),
        "id": texts,
        "name": texts.filter(bool),  # a call without a name is put aside
        "input": st.dictionaries(texts, chat.json_values, max_size=2),
    }
)
blocks = st.one_of(anthropic.text_blocks, anthropic.thinking_blocks, anthropic.server_blocks, server_calls, calls)
messages = anthropic.objects(
    {"type": st.just("message"), "role": st.just("assistant"), "content": st.lists(blocks, max_size=4)},
    {
        "id": texts,
        "stop_reason": st.sampled_from([None, "end_turn", "tool_use"]),
        "usage": st.dictionaries(texts, st.integers(), max_size=2),
        "container": st.none() | st.just({"id": "c"}),
        "context_management": st.none() | st.just({"applied_edits": []}),
    },
)


@st.composite
def anthropic_streams(draw: Draw) -> tuple[list[Object], list[Object]]:
    """Whole messages, and the events of their stream."""
    message = draw(messages)
    cut = cut_by(draw)
    lists = [split_anthropic.split_block(index, block, cut) for index, block in enumerate(message["content"])]
    return [message], [split_anthropic.start(message), *mixed(draw, lists), *split_anthropic.end(message)]


# --- OpenAI's Responses -----------------------------------------------------------------------------------------------

examples = st.sampled_from(sorted(ITEMS)).map(lambda kind: example(ITEMS[kind], kind))
said_parts = st.one_of(
    responses.typed("output_text", {"text": texts}, {"annotations": st.just([]) | st.just([{"type": "x"}])}),
    responses.typed("refusal", {"refusal": texts}),
)
said = st.fixed_dictionaries(
    {"type": st.just("message"), "id": texts, "role": st.just("assistant"), "content": st.lists(said_parts, max_size=3)}
)
called = responses.calls.filter(lambda item: item["name"] and ("arguments" in item or "input" in item))
thought = responses.typed("reasoning", {}, {"id": texts, "summary": responses.summaries, "content": responses.thoughts})
built_in = responses.built_in.filter(lambda item: item["type"] != "shell_call")  # its action has a shape
items = st.one_of(examples, said, called, thought, built_in)


@st.composite
def responses_streams(draw: Draw) -> tuple[list[Object], list[Object]]:
    """Each item comes whole in some form, and so may the response; the deltas and the other forms may be missing."""
    output = draw(st.lists(items, max_size=4))
    cut, whole = cut_by(draw), draw(st.booleans())
    lists = [list(_events(draw, split_responses.split_item(index, item, cut))) for index, item in enumerate(output)]
    end = split_responses.completed(output if whole else draw(st.sampled_from([None, []])))
    return output, [split_responses.created(), *mixed(draw, lists), end]


def _events(draw: Draw, events: split_responses.Events) -> Iterator[Object]:
    """Deltas alone say nothing of some fields, as of an item that has a text where its type has a list."""
    yield events.added
    if draw(st.booleans()):
        yield from events.deltas
    if draw(st.booleans()):
        yield from events.parts_done
    yield events.done


# --- Chat completions -------------------------------------------------------------------------------------------------

functions = chat.objects(
    {"name": texts.filter(bool)}, {"arguments": chat.nullable_texts | st.dictionaries(texts, chat.json_values)}
)
chat_calls: chat.Objects = st.one_of(
    st.fixed_dictionaries({"id": texts.filter(bool), "type": st.just("function"), "function": functions}),
    st.fixed_dictionaries(
        {
            "id": texts.filter(bool),
            "type": st.just("custom"),
            "custom": st.fixed_dictionaries({"name": texts.filter(bool), "input": texts}),
        }
    ),
)
text_parts = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
thoughts = st.lists(text_parts, min_size=1, max_size=1)
thinking_parts = st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts | thoughts})
chat_parts = st.one_of(text_parts, thinking_parts, st.just({"type": "reference", "reference_ids": [1]}))
chat_messages: chat.Objects = st.fixed_dictionaries(
    {"role": st.just("assistant")},
    optional={
        "content": st.none() | texts | st.lists(chat_parts, max_size=4).filter(lambda parts: _alternate(parts)),
        "refusal": chat.nullable_texts,
        "reasoning_content": texts,
        "reasoning": texts,
        "tool_calls": st.none() | st.lists(chat_calls, max_size=3, unique_by=lambda call: call["id"]),
        "audio": st.fixed_dictionaries({"id": texts, "data": texts, "transcript": texts}),
        "of_tomorrow": chat.json_values,
    },
)


_KEYS = (
    "role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "audio", "of_tomorrow"
)  # fmt: skip
"""The order in which the keys come: one that says something in the place of another follows it."""


def _alternate(parts: list[Object]) -> bool:
    """Whether no two running texts of one type are adjacent: their pieces could not be distinguished."""
    kinds = [part["type"] for part in parts]
    return all(one != other or one == "reference" for one, other in pairwise(kinds))


@st.composite
def chat_streams(draw: Draw) -> tuple[list[Object], list[Object]]:
    drawn = draw(chat_messages)
    message = {key: drawn[key] for key in _KEYS if key in drawn}
    return [message], split_chat.split(message, cut_by(draw))


# --- The laws ---------------------------------------------------------------------------------------------------------

STREAMS: dict[str, Callable[[], st.SearchStrategy[tuple[list[Object], list[Object]]]]] = {
    "anthropic": anthropic_streams,
    "openai-responses": responses_streams,
    "openai-chat": chat_streams,
}
streams = st.sampled_from(stream_names()).flatmap(lambda name: STREAMS[name]().map(lambda drawn: (name, *drawn)))


@given(anthropic_streams())
def test_a_message_of_anthropic_is_read_as_the_whole_one(drawn: tuple[list[Object], list[Object]]) -> None:
    whole, events = drawn
    assert assembled("anthropic", events) == decoded("anthropic", whole)


@given(responses_streams())
def test_an_output_is_read_as_the_whole_one(drawn: tuple[list[Object], list[Object]]) -> None:
    whole, events = drawn
    assume(_reads("openai-responses", whole))
    assert assembled("openai-responses", events) == decoded("openai-responses", whole)


@given(chat_streams())
def test_a_chat_message_is_read_as_the_whole_one(drawn: tuple[list[Object], list[Object]]) -> None:
    whole, events = drawn
    assert assembled("openai-chat", events) == decoded("openai-chat", whole)


@given(streams)
def test_a_stream_that_is_cut_anywhere_has_the_beginning_of_each_text(drawn: Any) -> None:
    name, whole, events = drawn
    assume(_reads(name, whole))
    said = [_texts(name, fed(name, events[:end]).payload()) for end in range(len(events) + 1)]
    for earlier, later in pairwise(said):
        assert all(any(text.startswith(piece) for text in later) for piece in earlier)


broken = st.recursive(
    chat.scalars | st.sampled_from(["text", "message", "tool_use", "function_call", "output_text", "assistant"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts | st.sampled_from(["type", "text"]), inner),
    max_leaves=4,
)


@given(streams, st.data())
def test_broken_events_cost_nothing_of_the_others(drawn: Any, data: st.DataObject) -> None:
    """Before an event comes one like it, in which a value is another one. What is assembled can still be decoded."""
    name, _, events = drawn
    stream = fed(name, [])
    for event in events:
        if data.draw(st.booleans()):
            damaged = _broken(event, data.draw)
            stream.feed(damaged if isinstance(damaged, dict) else {"damaged": damaged})
        stream.feed(event)
        get_codec(name).decode(stream.payload(), rules="lenient")  # a call may have lost its name


def _broken(value: Json, draw: Any) -> Json:
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(list(value)))
        if draw(st.integers(0, 5)) == 0:
            return {other: value[other] for other in value if other != key}
        return {**value, key: _broken(value[key], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _broken(value[place], draw), *value[place + 1 :]]
    return draw(broken)


def _reads(name: str, payload: list[Object]) -> bool:
    try:
        return decoded(name, payload) is not None
    except Exception:
        return False


def _texts(name: str, payload: list[Object]) -> list[str]:
    return [text for message in get_codec(name).decode(payload).messages for text in _texts_of(message)]


def _texts_of(message: ChatMessage) -> Iterator[str]:
    for said in (message.content, message.reasoning):
        if isinstance(said, str):
            yield said
        for part in said if isinstance(said, list) else ():
            if isinstance(part, (TextPart, ThinkPart)):
                yield part.text
