"""The events of providers' streams, and the messages that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from chatledger import Ledger, OpaquePart, Pace, Payload, TextPart, ThinkPart, ToolCall
from chatledger.errors import DecodeError, UnknownFormat
from chatledger.formats.streams import get_stream, stream_names
from chatledger.models.deltas import Growing


def told(name: str, events: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Content, reasoning and calls."""
    stream, growing = get_stream(name), Growing()
    for event in events:
        for delta in stream.feed(event):
            growing.add(delta)
    return growing.content(), growing.reasoning(), growing.tool_calls(nameless=True)


def chunk(**delta: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def fragment(index: int | None, arguments: str | None, **rest: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": rest.pop("name")} if "name" in rest else {})}
    return {"index": index, "function": function, **rest}


CHAT = [
    chunk(role="assistant", content=""),
    chunk(reasoning_content="Let me "),
    chunk(reasoning_content="see.", content=None),
    chunk(content="One "),
    chunk(content="moment."),
    chunk(tool_calls=[fragment(0, "", id="a", type="function", name="weather")]),
    chunk(tool_calls=[fragment(0, '{"city": ', id="", name="")]),
    chunk(tool_calls=[fragment(1, '{"at"', id="b", name="time"), fragment(0, '"Tokyo"}')]),
    chunk(tool_calls=[fragment(1, ": 1}")]),
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"total_tokens": 3}},
]
CALLS = [
    ToolCall(id="a", name="weather", arguments='{"city": "Tokyo"}'),
    ToolCall(id="b", name="time", arguments='{"at": 1}'),
]
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let me see."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "One "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "moment."}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "weather"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"city": '}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"Tokyo"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "b", "name": "now"}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Let me see."},
    {"type": "response.output_item.done", "item": {"type": "reasoning", "encrypted_content": "sig"}},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "One "},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "moment."},
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": ""},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"city": '},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '"Tokyo"}'},
    {"type": "response.function_call_arguments.done", "output_index": 2, "arguments": '{"city": "Tokyo"}'},
    {"type": "response.completed", "response": {}},
]
SEALED = [ThinkPart(text="Let me see.", signature="sig")]
STREAMS: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "openai-chat": (CHAT, ("One moment.", "Let me see.", CALLS)),
    "anthropic": (ANTHROPIC, ("One moment.", SEALED, [CALLS[0], ToolCall(id="b", name="now", arguments="{}")])),
    "openai-responses": (RESPONSES, ("One moment.", SEALED, CALLS[:1])),
}


class Event(BaseModel, extra="allow"):
    """As an SDK gives it."""


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_makes_its_message(name: str) -> None:
    events, message = STREAMS[name]
    assert told(name, events) == message
    assert told(name, [Event(**event) for event in events]) == message


NOT_COMPARED = {"message_id", "thread_id", "created_at"}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_draft_stores_what_an_append_of_the_whole_response_stores(ledger: Ledger, name: str) -> None:
    events, _ = STREAMS[name]
    stream = get_stream(name)
    await ledger.threads.create("streamed")
    await ledger.threads.create("appended")
    async with ledger.messages.stream("streamed", format=name, pace=Pace(interval=0)) as draft:
        for event in events:
            stream.feed(event)
            await draft.feed(event)
    await ledger.messages.append("appended", Payload(stream.payload(), name))
    streamed, appended = [await ledger.messages.history(thread) for thread in ("streamed", "appended")]
    assert [one.model_dump(exclude=NOT_COMPARED) for one in streamed] == [
        one.model_dump(exclude=NOT_COMPARED) for one in appended
    ]
    assert draft.message == streamed.messages[-1]


@pytest.mark.parametrize("name", STREAMS)
async def test_a_draft_that_is_fed_with_more_than_events_keeps_all_of_it(ledger: Ledger, name: str) -> None:
    events, _ = STREAMS[name]
    await ledger.threads.create("t")
    async with ledger.messages.stream("t", format=name, pace=Pace(interval=0)) as draft:
        for event in events:
            await draft.feed(event)
        await draft.feed("And more.")
    (whole,) = await ledger.messages.history("t")
    assert "And more." in whole.text


def test_content_in_parts_brings_its_texts_and_its_reasoning() -> None:
    thoughts = [{"type": "thinking", "thinking": [{"type": "text", "text": text}]} for text in ("Let me ", "see.")]
    events = [chunk(content=[part]) for part in (*thoughts, {"type": "text", "text": "One "})]
    whole = [ThinkPart(text="Let me see."), TextPart(text="One moment.")]
    assert told("openai-chat", [*events, chunk(content="moment.")])[0] == whole


def test_events_that_only_some_servers_send() -> None:
    assert told("openai-chat", [chunk(reasoning="hm"), chunk(refusal="No.")]) == ("No.", "hm", None)
    legacy = [chunk(function_call={"name": "f", "arguments": ""}), chunk(function_call={"arguments": "{}"})]
    assert told("openai-chat", legacy)[2] == [ToolCall(name="f", arguments="{}")]
    all_zero = [chunk(tool_calls=[fragment(0, "{}", id=id_, name="f")]) for id_ in "ab"]
    assert told("openai-chat", all_zero)[2] == [ToolCall(id=id_, name="f", arguments="{}") for id_ in "ab"]
    custom = [{"index": 0, "id": "a", "custom": {"name": "sh", "input": "ls"}}]
    assert told("openai-chat", [chunk(tool_calls=custom)])[2] == [ToolCall(id="a", name="sh", arguments="ls")]


def test_blocks_of_other_kinds_are_kept_whole() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_start", "index": 1, "content_block": search},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"q": 1}'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_stop", "index": 2},
    ]
    assert told("anthropic", events)[0] == [
        TextPart(text="a"),
        OpaquePart(type="server_tool_use", value=search | {"input": {"q": 1}}),
        OpaquePart(type="redacted_thinking", value={"type": "redacted_thinking", "data": "x"}),
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_a_value_that_is_not_an_event_is_refused(name: str) -> None:
    with pytest.raises(DecodeError) as caught:
        get_stream(name).feed(7)
    assert caught.value.path == "$"


def test_an_unknown_stream_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownFormat, match=", ".join(stream_names())):
        get_stream("smoke-signals")
