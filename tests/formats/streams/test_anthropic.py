"""The message of an Anthropic stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic._models import construct_type
from anthropic.lib.streaming._beta_messages import accumulate_event as accumulate_beta
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent, raw_content_block_start_event
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent, beta_raw_content_block_start_event
from httpx2 import Headers
from pydantic import BaseModel

from tests.formats.streams.reading import Object, assembled, decoded, fed, ordered
from tests.formats.streams.sdk_examples import example, members
from tests.formats.streams.split_anthropic import end, split, split_block, start
from tests.formats.streams.test_coverage import BLOCKS

CITATION = {"type": "char_location", "cited_text": "c", "document_index": 0, "start_char_index": 0}
MESSAGE: Object = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "QQ=="},
        {"type": "text", "text": "One moment.", "citations": [CITATION, {**CITATION, "document_index": 1}]},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Tokyo"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "mcp_tool_use", "id": "m1", "name": "ask", "server_name": "s", "input": {"q": [1, None]}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [{"type": "text", "text": "a"}]},
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "compaction", "content": "Before, …", "encrypted_content": "QQ=="},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Tokyo", "at": {"x": 1.50}}},
        {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "container": {"id": "c1"},
    "context_management": {"applied_edits": []},
    "usage": {"input_tokens": 5, "output_tokens": 40, "cache_read_input_tokens": 2},
}
EVENTS = split(MESSAGE)


def begun(*blocks: Object) -> list[Object]:
    return [event for index, block in enumerate(blocks) for event in split_block(index, block)[:1]]


def grown(index: int, **delta: Any) -> Object:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def content(events: list[Object]) -> Any:
    stream = fed("anthropic", events)
    assert stream.unknown == []
    decoded("anthropic", stream.payload())
    return stream.payload()[0]["content"]


def test_a_stream_makes_the_message_that_a_request_without_one_gives() -> None:
    stream = fed("anthropic", EVENTS)
    assert stream.payload() == [MESSAGE]
    assert assembled("anthropic", EVENTS) == decoded("anthropic", [MESSAGE])
    assert (stream.usage, stream.finish_reason, stream.failure) == (MESSAGE["usage"], "tool_use", None)


def sdk_events(beta: bool, events: list[Object]) -> list[Any]:
    """As the SDK gives them: it makes objects of them without validating them."""
    kind: Any = BetaRawMessageStreamEvent if beta else RawMessageStreamEvent
    return [construct_type(type_=kind, value=event) for event in events]


def sdk_message(beta: bool, events: list[Object]) -> Object:
    """The message that the SDK's own helper assembles."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in sdk_events(beta, events):
        if beta:
            snapshot = accumulate_beta(
                event=event, current_snapshot=snapshot, json_bufs=buffers, request_headers=Headers()
            )
        else:
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return dict(snapshot.to_dict(mode="json"))


def sdk_example(model: type[BaseModel], blocks: list[Object]) -> Object:
    """A message with each field that the class has."""
    return {**example(model, "message"), "content": blocks}


@pytest.mark.parametrize("beta", [True, False])
def test_the_message_is_the_one_that_the_sdk_assembles(beta: bool) -> None:
    kinds = members((beta_raw_content_block_start_event if beta else raw_content_block_start_event).ContentBlock)
    blocks = [example(one, kind) for kind, one in kinds.items() if kind != "fallback"]
    message = sdk_example(BetaMessage if beta else Message, blocks)
    events = split(message)
    stream = fed("anthropic", sdk_events(beta, events))
    theirs = sdk_message(beta, events)
    assert ordered(stream.payload()) == ordered([theirs])
    assert stream.unknown == []
    assert decoded("anthropic", ordered(stream.payload())) == decoded("anthropic", ordered([theirs]))


def test_a_fallback_names_the_model_that_goes_on() -> None:
    block = example(BLOCKS["fallback"], "fallback")
    events = [start(MESSAGE), *split_block(0, block), *end(MESSAGE)]
    whole = {**MESSAGE, "content": [block], "model": block["to"]["model"]}
    assert fed("anthropic", events).payload() == [whole]
    assert sdk_message(True, events)["model"] == whole["model"]


def test_a_message_that_restarts_drops_the_first_attempt() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = fed("anthropic", [*EVENTS[:-3], error])
    assert stream.failure == "overloaded_error: Overloaded"
    again = fed("anthropic", [*EVENTS[:-3], error, *EVENTS])
    assert (again.payload(), again.failure) == ([MESSAGE], None)


def test_counts_of_usage_are_totals_and_a_null_erases_nothing() -> None:
    later = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"input_tokens": None, "new": 1}}
    stream = fed("anthropic", [*EVENTS, later])
    assert stream.usage == {**MESSAGE["usage"], "new": 1}
    assert stream.finish_reason == "tool_use"
    assert fed("anthropic", EVENTS[1:]).usage == MESSAGE["usage"]


def test_blocks_are_in_the_order_of_their_indexes_in_any_order_of_events() -> None:
    blocks = [{"type": "text", "text": "One "}, {"type": "text", "text": "moment."}]
    first, second = (split_block(index, block) for index, block in enumerate(blocks))
    mixed = [event for pair in zip(second, first, strict=True) for event in pair]
    assert content(mixed) == blocks
    same = [{**event, "index": 0} for event in [*first, *second]]
    assert content(same) == blocks


def test_an_input_may_come_at_the_start_of_its_block() -> None:
    call: Object = {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}
    given = {"type": "content_block_start", "index": 0, "content_block": call}
    assert content([given]) == [call]
    assert content([given, grown(0, type="input_json_delta", partial_json="")]) == [call]
    assert content([given, grown(0, type="input_json_delta", partial_json='{"b": 2}')]) == [call | {"input": {"b": 2}}]
    bare = {key: value for key, value in call.items() if key != "input"}
    assert content([given | {"content_block": bare}]) == [call | {"input": {}}]


@pytest.mark.parametrize("text", ['{"city": "To', "7", "[" * 5_000, '{"a":' * 490 + "1" + "}" * 490])
def test_an_input_that_is_not_an_object_is_kept_as_text(text: str) -> None:
    for kind in ("tool_use", "server_tool_use"):
        call: Object = {"type": kind, "id": "a", "name": "f", "input": {}}
        assert content([*begun(call), grown(0, type="input_json_delta", partial_json=text)]) == [call | {"input": text}]


def test_deltas_without_the_start_of_their_block_make_one() -> None:
    events = [grown(0, type="thinking_delta", thinking="Hm"), grown(1, type="text_delta", text="a")]
    assert content(events) == [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "a"}]


def test_a_block_of_tomorrow_grows_by_the_deltas_that_there_are_today() -> None:
    block = {"type": "connector_text", "text": "", "signature": "", "input": {}}
    given = {"type": "content_block_start", "index": 0, "content_block": block}
    deltas = [
        grown(0, type="text_delta", text="a"),
        grown(0, type="signature_delta", signature="s"),
        grown(0, type="citations_delta", citation=CITATION),
        grown(0, type="input_json_delta", partial_json='{"a": 1}'),
    ]
    whole = {"type": "connector_text", "text": "a", "signature": "s", "input": {"a": 1}, "citations": [CITATION]}
    assert content([given, *deltas]) == [whole]


NOT_UNDERSTOOD: list[Object] = [
    {},
    {"type": 7},
    {"type": "of_tomorrow"},
    {"type": "message_start"},
    {"type": "message_start", "message": "hello"},
    {"type": "message_start", "message": {"role": "user"}},
    {"type": "message_start", "message": {"content": [7]}},
    {"type": "message_delta", "delta": "stop"},
    {"type": "message_delta", "usage": 7},
    {"type": "content_block_start", "index": "0", "content_block": {"type": "text"}},
    {"type": "content_block_start", "index": 99, "content_block": "text"},
    {"type": "content_block_start", "index": 99, "content_block": {"type": "text", "text": 7}},
    {"type": "content_block_start", "index": 99, "content_block": {"type": "tool_use", "id": "a"}},
    {"type": "content_block_start", "index": 99, "content_block": {"type": "tool_result", "tool_use_id": "a"}},
    grown(0, type="text_delta", text="x"),
    grown(0, type="thinking_delta", thinking=7),
    grown(2, type="citations_delta", citation="c"),
    grown(2, type="of_tomorrow"),
    grown(2, type="input_json_delta", partial_json="{}"),
    grown(99, type="input_json_delta", partial_json="{}"),
    {"type": "content_block_delta", "index": 0, "delta": None},
    {"type": "ping", "at": object()},
    {"type": "ping", "deep": json.loads("[" * 490 + "]" * 490)},
]


@pytest.mark.parametrize("event", NOT_UNDERSTOOD, ids=range(len(NOT_UNDERSTOOD)))
def test_an_unknown_event_is_put_aside(event: Object) -> None:
    stream = fed("anthropic", [*EVENTS[:-2], event, *EVENTS[-2:]])
    assert (stream.payload(), stream.unknown) == ([MESSAGE], [event])


def test_events_of_the_sdk_helper_add_nothing() -> None:
    derived = [{"type": kind, "text": "x", "snapshot": "x"} for kind in ("text", "thinking", "citation", "input_json")]
    assert assembled("anthropic", [*EVENTS, *derived, {"type": "ping"}]) == decoded("anthropic", [MESSAGE])


def test_a_message_without_content_and_one_without_events() -> None:
    assert fed("anthropic", []).payload() == []
    assert fed("anthropic", [{"type": "ping"}]).payload() == []
    assert fed("anthropic", [start(MESSAGE)]).payload()[0]["content"] == []
