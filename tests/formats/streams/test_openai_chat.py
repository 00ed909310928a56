"""The message of a stream of chat completions."""

from __future__ import annotations

from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from chatledger.formats.streams import get_stream
from tests.formats.streams.reading import Object, assembled, decoded, fed, ordered, without_nulls
from tests.formats.streams.sdk_examples import example
from tests.formats.streams.split_chat import chunk, end, split

NAME = "openai-chat"
MESSAGE: Object = {
    "role": "assistant",
    "content": "One moment.",
    "reasoning_content": "Let me see.",
    "refusal": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Tokyo"}'}},
        {"id": "b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}},
    ],
    "reasoning_details": [
        {"type": "reasoning.text", "text": "Let me see.", "signature": "c2ln", "format": "v1", "index": 0},
        {"type": "reasoning.encrypted", "text": "", "signature": "", "data": "QQ==", "index": 0},
    ],
    "audio": {"id": "audio_1", "data": "QQ==", "expires_at": 7, "transcript": "One moment."},
    "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}],
    "provider_specific_fields": {"thought_signature": "x"},
}
THINKING: Object = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}], "closed": True},
        {"type": "text", "text": "One moment."},
        {"type": "reference", "reference_ids": [1]},
        {"type": "reference", "reference_ids": [2]},
        {"type": "text", "text": "So."},
    ],
}
LEGACY: Object = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}


def message_of(*chunks: Object) -> Any:
    stream = fed(NAME, chunks)
    assert stream.unknown == []
    decoded(NAME, stream.payload())
    return stream.payload()[0]


def called(*pieces: Object) -> Any:
    return message_of(*(chunk(tool_calls=[piece]) for piece in pieces))["tool_calls"]


def piece(index: int | None, name: str | None = None, arguments: str | None = None, **rest: Any) -> Object:
    given = {"name": name, "arguments": arguments}
    function = {key: value for key, value in given.items() if value is not None}
    return ({} if index is None else {"index": index}) | {**rest, "function": function}


def call(id_: str | None, name: str, arguments: str) -> Object:
    return ({} if id_ is None else {"id": id_}) | {"function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("message", [MESSAGE, THINKING, LEGACY], ids=["plain", "thinking", "legacy"])
def test_a_stream_makes_the_message_that_a_request_without_one_gives(message: Object) -> None:
    stream = fed(NAME, split(message))
    assert (stream.payload(), stream.unknown) == ([message], [])
    assert (stream.usage, stream.finish_reason, stream.failure) == ({"total_tokens": 7}, "stop", None)
    assert assembled(NAME, split(message)) == decoded(NAME, [message])


SDK_MESSAGES: dict[str, Object] = {
    "each field": example(ChoiceDelta) | {"role": "assistant", "tool_calls": MESSAGE["tool_calls"][:2]},
    "other servers": {key: value for key, value in MESSAGE.items() if key in ("role", "content", "reasoning_content")},
    "legacy": LEGACY,
}


@pytest.mark.parametrize("message", SDK_MESSAGES.values(), ids=SDK_MESSAGES)
def test_the_message_is_the_one_that_the_sdk_assembles(message: Object) -> None:
    """It keeps the index of each call, and has a null for each field that did not come."""
    chunks = [ChatCompletionChunk.construct(**event) for event in split(message)]
    state = ChatCompletionStreamState()
    for one in chunks:
        list(state.handle_chunk(one))
    theirs: Any = without_nulls(state.current_completion_snapshot.choices[0].message.to_dict(mode="json"))
    for one in theirs.get("tool_calls", ()):
        del one["index"]
    ours = without_nulls(fed(NAME, chunks).payload())
    assert ordered(ours) == ordered([theirs])
    assert decoded(NAME, ordered(ours)) == decoded(NAME, ordered([theirs]))


def test_a_list_of_content_and_texts_may_alternate() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    text = {"type": "text", "text": "a"}
    assert message_of(chunk(content=""), chunk(content=[thought]), chunk(content="a"))["content"] == [thought, text]
    assert message_of(chunk(content="a"), chunk(content=[thought]), chunk(content=""))["content"] == [text, thought]


def test_calls_of_servers_that_give_all_of_them_one_index_or_none() -> None:
    two = [call("a", "f", "{}"), call("b", "f", "[]")]
    for index in (0, None):
        pieces = [piece(index, "f", "{", id="a"), piece(index, None, "}"), piece(index, "f", "[]", id="b")]
        assert called(*pieces) == two
    assert called(piece(None, "f", "{}"), piece(None, "g", "[]")) == [call(None, "f", "{}"), call(None, "g", "[]")]
    assert called(piece(None, "f", "{", id="a"), piece(None, "f", "}", id="a")) == two[:1]


def test_pieces_of_calls_that_come_mixed() -> None:
    pieces = [piece(1, "g", "[", id="b"), piece(0, "f", "{", id="a"), piece(1, None, "]"), piece(0, None, "}")]
    assert called(*pieces) == [call("a", "f", "{}"), call("b", "g", "[]")]


def test_names_and_ids_may_be_repeated_and_names_may_come_in_pieces() -> None:
    assert called(piece(0, "f", "{", id="a"), piece(0, "f", "}", id="a")) == [call("a", "f", "{}")]
    assert called(piece(0, "wea", "", id="a"), piece(0, "ther", "{}", id="")) == [call("a", "weather", "{}")]
    assert message_of(chunk(role="assistant", content="a"), chunk(role="assistant", content="b")) == {
        "role": "assistant",
        "content": "ab",
    }


def test_a_custom_call_needs_no_type() -> None:
    custom = {"index": 0, "id": "a", "custom": {"name": "sh", "input": "ls"}}
    assert called(custom) == [{"id": "a", "custom": {"name": "sh", "input": "ls"}, "type": "custom"}]


def test_arguments_may_come_whole_as_an_object() -> None:
    given = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"a": 1}}}
    assert called(given) == [{"id": "a", "function": {"name": "f", "arguments": {"a": 1}}}]


def test_a_call_without_a_name_is_reported() -> None:
    stream = fed(NAME, [chunk(content="a"), chunk(tool_calls=[piece(0, None, "{}", id="a")])])
    assert stream.payload() == [{"role": "assistant", "content": "a"}]
    nameless = {"id": "a", "function": {"arguments": "{}"}}
    assert stream.unknown == [{"choices": [{"index": 0, "delta": {"tool_calls": [nameless]}}]}]
    stream.feed(chunk(tool_calls=[piece(0, "f")]))
    assert (stream.payload()[0]["tool_calls"], stream.unknown) == ([call("a", "f", "{}")], [])
    legacy = fed(NAME, [chunk(content="a", function_call={"arguments": "{}"})])
    assert legacy.payload() == [{"role": "assistant", "content": "a"}]
    assert legacy.unknown == [{"choices": [{"index": 0, "delta": {"function_call": {"arguments": "{}"}}}]}]


def test_details_of_reasoning_without_an_index_are_joined_while_their_type_stays() -> None:
    details = [{"type": "reasoning.text", "text": text} for text in ("Let ", "me see.")]
    sealed = {"type": "reasoning.encrypted", "data": "QQ=="}
    chunks = [chunk(reasoning_details=[detail]) for detail in (*details, sealed, sealed)]
    whole = {"type": "reasoning.text", "text": "Let me see."}
    assert message_of(*chunks)["reasoning_details"] == [whole, sealed, sealed]


def test_entries_of_a_list_are_in_the_order_of_their_indexes() -> None:
    details = [{"type": "reasoning.text", "text": text, "index": index} for index, text in enumerate("abc")]
    order = (1, 0, 2, 0)
    chunks = [chunk(reasoning_details=[details[index]]) for index in order]
    assert message_of(*chunks)["reasoning_details"] == [details[0] | {"text": "aa"}, *details[1:]]


KNOWN_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
"""Deltas: two equal pieces are a word that is said twice."""
KNOWN_VALUES = ("channel", "recipient")


@pytest.mark.parametrize("key", KNOWN_TEXTS)
def test_a_known_text_is_joined_though_its_pieces_are_equal(key: str) -> None:
    assert message_of(*(chunk(**{key: "ha"}) for _ in range(3)))[key] == "hahaha"


def test_known_texts_further_down_are_joined_though_their_pieces_are_equal() -> None:
    arguments = [piece(0, "f", "1", id="a"), piece(0, None, "1")]
    assert called(*arguments) == [call("a", "f", "11")]
    custom = [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "a"}}]
    custom.append({"index": 0, "custom": {"input": "a"}})
    assert called(*custom)[0]["custom"] == {"name": "f", "input": "aa"}
    legacy = [chunk(function_call={"name": "f", "arguments": "1"}), chunk(function_call={"arguments": "1"})]
    assert message_of(*legacy)["function_call"] == {"name": "f", "arguments": "11"}
    sound = {"data": "QQ", "transcript": "la"}
    assert message_of(chunk(audio=sound), chunk(audio=sound))["audio"] == {"data": "QQQQ", "transcript": "lala"}
    for key in ("text", "summary", "data"):
        details = [chunk(reasoning_details=[{"index": 0, key: "ha"}]) for _ in range(2)]
        assert message_of(*details)["reasoning_details"][0][key] == "haha"


@pytest.mark.parametrize("key", KNOWN_VALUES)
def test_a_value_that_is_no_delta_keeps_its_last_value(key: str) -> None:
    values = ("analysis", "analysis", "final", "", None)
    assert message_of(chunk(content="a"), *(chunk(**{key: value}) for value in values))[key] == "final"


def test_the_arguments_of_a_tool_that_the_server_ran_keep_their_last_value() -> None:
    ran = {"index": 0, "type": "search", "arguments": '{"q": 1}'}
    done = [chunk(executed_tools=[ran]), chunk(executed_tools=[{**ran, "output": "3"}])]
    assert message_of(*done)["executed_tools"] == [{**ran, "output": "3"}]
    more = chunk(executed_tools=[{"index": 0, "arguments": '{"q": 2}'}])
    assert message_of(*done, more)["executed_tools"][0]["arguments"] == '{"q": 2}'


def test_of_equal_pieces_of_an_unknown_key_one_is_kept() -> None:
    assert message_of(*(chunk(content="a", mood="calm") for _ in range(3)))["mood"] == "calm"
    nested = chunk(extra={"inner": {"mood": "calm"}}, list=[{"index": 0, "mood": "calm"}])
    message = message_of(nested, nested)
    assert (message["extra"], message["list"]) == ({"inner": {"mood": "calm"}}, [{"index": 0, "mood": "calm"}])


def test_different_pieces_of_an_unknown_key_are_joined_and_the_key_is_named() -> None:
    pieces = ("ha", "ha", "", "ho", "ha")
    stream = fed(NAME, [chunk(content="a"), *(chunk(mood=one) for one in pieces)])
    assert stream.payload() == [{"role": "assistant", "content": "a", "mood": "hahahoha"}]
    assert stream.unknown == [{"joined": "mood"}]
    assert stream.payload()[0]["mood"] == "hahahoha"


def test_an_unknown_key_further_down_is_named_once() -> None:
    def entry(index: int, mood: str) -> Object:
        return {"index": index, "type": "x", "mood": mood}

    events = [chunk(extra={"mood": one}, list=[entry(0, one), entry(1, one)]) for one in "ab"]
    events += [chunk(tool_calls=[piece(0, "f", one, id="a", extra={"mood": one})]) for one in "ab"]
    stream = fed(NAME, events)
    assert [one["mood"] for one in stream.payload()[0]["list"]] == ["ab", "ab"]
    named = [{"joined": path} for path in ("extra.mood", "list[].mood", "tool_calls[].extra.mood")]
    assert stream.unknown == named


def test_other_choices_are_reported() -> None:
    event = chunk(content="a")
    other = {"index": 1, "delta": {"content": "b"}}
    stream = fed(NAME, [event | {"choices": [*event["choices"], other]}, chunk(content="c")])
    assert stream.payload() == [{"role": "assistant", "content": "ac"}]
    assert stream.unknown == [event | {"choices": [other]}]


def test_another_role_is_reported_and_the_words_are_the_assistants() -> None:
    event = chunk(role="model", content="a")
    stream = fed(NAME, [event])
    assert (stream.payload(), stream.unknown) == ([{"role": "assistant", "content": "a"}], [event])


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        ({"error": {"code": 502, "message": "Provider disconnected"}}, "502: Provider disconnected"),
        ({"error": "overloaded"}, "overloaded"),
        ({"object": "error", "code": "x", "message": "No"}, "x: No"),
        ({"type": "error", "error": {"message": "No"}}, "No"),
    ],
)
def test_a_failure_is_reported_and_keeps_the_events_before_it(event: Object, failure: str) -> None:
    stream = fed(NAME, [chunk(content="a"), event])
    assert (stream.failure, stream.unknown) == (failure, [])
    assert stream.payload() == [{"role": "assistant", "content": "a"}]


def test_an_error_may_come_with_the_last_words() -> None:
    last = chunk("error", content="b") | {"error": {"message": "Disconnected"}}
    stream = fed(NAME, [chunk(content="a"), last])
    assert stream.payload() == [{"role": "assistant", "content": "ab"}]
    assert (stream.failure, stream.finish_reason) == ("Disconnected", "error")


def test_a_server_may_give_the_message_whole() -> None:
    whole = {"object": "chat.completion", "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}
    assert message_of(whole) == MESSAGE
    stream = fed(NAME, [chunk(content="a"), whole])
    assert (stream.payload(), stream.unknown) == ([{"role": "assistant", "content": "a"}], [whole])


def test_usage_may_be_in_the_choice() -> None:
    last = chunk("stop")
    last["choices"][0]["usage"] = {"total_tokens": 3}
    assert fed(NAME, [chunk(content="a"), last]).usage == {"total_tokens": 3}


def test_events_of_the_sdks_helper_are_read_by_their_chunks() -> None:
    events = [{"type": "chunk", "chunk": one, "snapshot": {}} for one in split(MESSAGE)]
    derived: list[Object] = [{"type": "content.delta", "delta": "x", "snapshot": "x"}, {"type": "content.done"}]
    stream = fed(NAME, [*events, *derived])
    assert (stream.payload(), stream.unknown) == ([MESSAGE], [])
    assert get_stream(NAME).feed(events[1]) == get_stream(NAME).feed(split(MESSAGE)[1])


NOT_UNDERSTOOD: list[Object] = [
    {},
    {"type": "ping"},
    {"choices": {"index": 0}},
    {"choices": [{"index": 0, "delta": "x"}]},
    {"choices": [{"index": 0, "text": "x", "finish_reason": None}]},
    {"object": "text_completion", "choices": [{"index": 0, "text": "x", "finish_reason": "length"}], "usage": {}},
    {"choices": [{"index": 0, "content_filter_offsets": {}, "finish_reason": None}]},
    {"choices": [], "usage": 7},
    chunk(content=7),
    chunk(content={"type": "text", "text": "x"}),
    chunk(content=["x"]),
    chunk(content=[{"type": "text"}]),
    chunk(content=[{"index": 0, "text": 7}]),
    chunk(refusal=["no"], content="x"),
    chunk(name=7, content="x"),
    chunk(function_call="f"),
    chunk(function_call={"name": 7}),
    chunk(tool_calls={"index": 0}),
    chunk(tool_calls=[7], content="x"),
    chunk(tool_calls=[{"index": "0", "function": {"name": "f"}}]),
    chunk(tool_calls=[{"index": 0, "id": 7}]),
    chunk(tool_calls=[{"index": 0, "function": "f"}]),
    chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": 7}}]),
    chunk(tool_calls=[{"function": {"arguments": "x"}}]),
]


@pytest.mark.parametrize("event", NOT_UNDERSTOOD, ids=range(len(NOT_UNDERSTOOD)))
def test_an_unknown_event_is_put_aside(event: Object) -> None:
    stream = fed(NAME, [chunk(role="assistant", content="One "), event, chunk(content="moment."), *end()])
    assert (stream.payload(), stream.unknown) == ([{"role": "assistant", "content": "One moment."}], [event])


def test_the_reason_of_an_end_without_a_delta_is_known() -> None:
    last: Object = {"choices": [{"index": 0, "finish_reason": "stop"}], "usage": {"total_tokens": 3}}
    stream = fed(NAME, [chunk(content="a"), last])
    assert (stream.finish_reason, stream.usage, stream.unknown) == ("stop", {"total_tokens": 3}, [last])


def test_a_stream_that_says_nothing_has_no_message() -> None:
    assert fed(NAME, []).payload() == []
    assert fed(NAME, end()).payload() == []
    assert fed(NAME, [chunk(role="assistant")]).payload() == [{"role": "assistant"}]
