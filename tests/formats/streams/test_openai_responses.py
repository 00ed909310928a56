"""The output items of a stream of the Responses API."""

from __future__ import annotations

from typing import Any

import pytest
from openai import Omit
from openai._models import construct_type_unchecked
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from tests.formats.streams.reading import Object, assembled, decoded, fed, ordered
from tests.formats.streams.split_responses import completed, created, split, split_item
from tests.formats.streams.test_coverage import ITEMS, item_of

NAME = "openai-responses"
ANNOTATION = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 3}
REASONING: Object = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
    "content": [{"type": "reasoning_text", "text": "Let me see."}],
    "encrypted_content": "c2ln",
}
MESSAGE: Object = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [
        {
            "type": "output_text",
            "text": "One moment.",
            "annotations": [ANNOTATION],
            "logprobs": [{"token": "One", "logprob": -0.5}],
        },
        {"type": "refusal", "refusal": "No more."},
        {"type": "output_text", "text": "Or so.", "annotations": []},
    ],
}
CALL: Object = {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city": "T"}'}
OUTPUT = [REASONING, MESSAGE, CALL, {**CALL, "id": "fc_2", "call_id": "b"}]


def items(events: list[Object]) -> Any:
    stream = fed(NAME, events)
    assert stream.unknown == []
    decoded(NAME, stream.payload())
    return stream.payload()


def added(index: int | None, item: Object) -> Object:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int | None, item: Object) -> Object:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def said(text: str, index: int | None = 0, item_id: str | None = None, **more: Any) -> Object:
    return {"type": "response.output_text.delta", "output_index": index, "item_id": item_id, "delta": text, **more}


def text_of(payload: list[Object]) -> list[str]:
    return [part["text"] for item in payload for part in item["content"]]


def test_a_stream_makes_the_output_that_a_request_without_one_gives() -> None:
    stream = fed(NAME, split(OUTPUT))
    assert (stream.payload(), stream.unknown) == (OUTPUT, [])
    assert (stream.usage, stream.finish_reason, stream.failure) == ({"total_tokens": 7}, "completed", None)
    assert assembled(NAME, split(OUTPUT)) == decoded(NAME, OUTPUT)


@pytest.mark.parametrize("final", ["output", "no output"])
def test_the_output_is_the_one_that_the_sdk_assembles(final: str) -> None:
    """Its objects of texts and calls have a field more, for what an application parses them as."""
    output = [item_of(kind) | {"id": f"item_{index}"} for index, kind in enumerate(ITEMS)]
    events = split(output)
    events[-1] = completed(output if final == "output" else None)
    kind: Any = ResponseStreamEvent
    objects: list[Any] = [
        construct_type_unchecked(type_=kind, value=event | {"sequence_number": number})
        for number, event in enumerate(events)
    ]
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=Omit(), text_format=Omit())
    for event in objects:
        state.handle_event(event)
    assert state._completed_response is not None
    theirs = [_without_parsed(item) for item in state._completed_response.to_dict(mode="json")["output"]]  # type: ignore[attr-defined]
    assert ordered(fed(NAME, objects).payload()) == ordered(theirs)
    assert assembled(NAME, objects) == decoded(NAME, _as_dumped(theirs, fed(NAME, objects).payload()))


def _without_parsed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_parsed(one) for key, one in value.items() if not key.startswith("parsed")}
    return [_without_parsed(one) for one in value] if isinstance(value, list) else value


def _as_dumped(theirs: Any, ours: Any) -> Any:
    """Their values in our order of keys."""
    if isinstance(theirs, dict):
        return {key: _as_dumped(theirs[key], ours[key]) for key in ours}
    return [_as_dumped(*pair) for pair in zip(theirs, ours, strict=True)] if isinstance(theirs, list) else theirs


def test_the_last_complete_form_wins() -> None:
    short = {"type": "message", "id": "m", "role": "assistant", "content": []}
    events = [added(0, short), said("a", content_index=0)]
    forms = []
    for text in "bcd":
        part = {"type": "output_text", "text": text, "annotations": []}
        forms.append((part, {**short, "content": [part]}))
    (part, _), (_, item), (_, last) = forms
    events.append({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part})
    assert text_of(items(events)) == ["b"]
    events += [done(0, item), said("late")]
    assert text_of(items(events)) == ["c"]
    events += [completed([last]), done(0, item), said("late")]
    assert text_of(items(events)) == ["d"]


def test_arguments_may_come_only_at_their_end() -> None:
    begun = added(0, CALL | {"arguments": ""})
    only = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": CALL["arguments"]}
    assert items([begun, only]) == [CALL]
    assert items([begun, only, done(0, CALL | {"arguments": ""})]) == [CALL]
    assert items([done(0, CALL)]) == [CALL]


def test_a_text_that_is_done_needs_no_part_that_is_done() -> None:
    begun = added(0, {"type": "message", "id": "m", "role": "assistant", "content": []})
    text = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "One moment."}
    refusal = {"type": "response.refusal.done", "output_index": 0, "content_index": 1, "refusal": "No."}
    (message,) = items([begun, said("One"), text, refusal])
    assert message["content"] == [
        {"type": "output_text", "text": "One moment.", "annotations": []},
        {"type": "refusal", "refusal": "No."},
    ]


def test_the_output_of_the_response_wins_over_items_that_it_leaves_out() -> None:
    assert items([*split(OUTPUT)[:-1], completed([MESSAGE])]) == [MESSAGE]


def test_an_item_may_come_empty() -> None:
    hidden = {"type": "response.output_item.added", "output_index": 0, "item": None}
    assert items([hidden, done(1, CALL)]) == [CALL]


def test_items_are_in_the_order_of_their_indexes() -> None:
    assert items([done(1, MESSAGE), done(0, REASONING)]) == [REASONING, MESSAGE]


@pytest.mark.parametrize("index", [None, 0])
def test_servers_that_give_all_items_one_index_or_none(index: int | None) -> None:
    parts = [split_item(0, item) for item in OUTPUT]
    events = [event for one in parts for event in (one.added, *one.deltas, *one.parts_done)]
    for event in events:
        event["output_index"] = index
    assert items(events) == OUTPUT
    ended = [event for one in parts for event in (one.added, *one.deltas, *one.parts_done, one.done)]
    assert items([event | {"output_index": index} for event in ended]) == OUTPUT


def test_results_without_an_id_are_matched_by_their_call() -> None:
    calls: list[Object] = [{**CALL, "call_id": call_id, "arguments": f'"{call_id}"'} for call_id in "ab"]
    for call in calls:
        del call["id"]
    begun = [added(0, call | {"arguments": ""}) for call in calls]
    assert items(begun) == [call | {"arguments": ""} for call in calls]
    assert items([*begun, *(done(0, call) for call in calls)]) == calls


def test_items_with_one_id_are_distinguished_by_their_index() -> None:
    messages = [MESSAGE | {"content": []}, MESSAGE | {"content": []}]
    begun = [added(index, message) for index, message in enumerate(messages)]
    assert text_of(items([*begun, said("a", 0, "msg_1"), said("b", 1, "msg_1"), said("c", 0, "msg_1")])) == ["ac", "b"]


def test_a_server_that_gives_each_event_of_an_item_another_id() -> None:
    begun = added(0, MESSAGE | {"id": "x", "content": []})
    assert items([begun, said("One", item_id="y"), done(0, MESSAGE)]) == [MESSAGE]


def test_deltas_without_their_item_make_one() -> None:
    thought = {"type": "response.reasoning_summary_text.delta", "delta": "Hm"}
    seal = {"type": "response.output_item.done", "item": {"type": "reasoning", "encrypted_content": "c2ln"}}
    message = {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}
    assert items([thought, seal, said("a", None)]) == [
        {"type": "reasoning", "encrypted_content": "c2ln", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "message", **message},
    ]


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        ({"type": "error", "code": "server_error", "message": "Sorry"}, "server_error: Sorry"),
        ({"type": "error", "error": {"type": "overloaded", "message": "Busy"}}, "overloaded: Busy"),
        ({"type": "error"}, "{}"),
        (
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "No"}}},
            "x: No",
        ),
        ({"type": "response.failed", "response": {}}, "failed"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            "incomplete: max_output_tokens",
        ),
    ],
)
def test_a_failure_is_reported_and_keeps_the_events_before_it(event: Object, failure: str) -> None:
    stream = fed(NAME, [*split(OUTPUT)[:-1], event])
    assert (stream.failure, stream.payload(), stream.unknown) == (failure, OUTPUT, [])
    assert stream.finish_reason in ("in_progress", "failed", "incomplete")


def test_the_output_of_an_incomplete_response_replaces_as_much_as_it_has() -> None:
    cut = {"id": "resp_1", "output": [REASONING | {"status": "incomplete"}]}
    stream = fed(NAME, [*split(OUTPUT)[:-1], {"type": "response.incomplete", "response": cut}])
    assert stream.payload() == [REASONING | {"status": "incomplete"}, *OUTPUT[1:]]


def test_a_response_that_restarts_drops_the_first_attempt() -> None:
    assert items([*split(OUTPUT)[:-5], *split([MESSAGE])]) == [MESSAGE]
    assert items([*split(OUTPUT), *split(OUTPUT)]) == OUTPUT
    failed = {"type": "response.failed", "response": {"id": "resp_0", "status": "failed"}}
    again = fed(NAME, [created(), done(0, CALL), failed, *split([MESSAGE])])
    assert (again.payload(), again.failure) == ([MESSAGE], None)


def test_a_response_that_goes_on_from_another_keeps_both() -> None:
    """A response that is steered ends, and its successor begins in the same stream."""
    steered = {"id": "resp_0", "output": [REASONING], "incomplete_details": {"reason": "steered"}}
    first = [done(0, REASONING), {"type": "response.incomplete", "response": steered}]
    stream = fed(NAME, [*first, *split([MESSAGE])])
    assert (stream.payload(), stream.failure) == ([REASONING, MESSAGE], None)


def test_an_output_that_cannot_be_read_is_reported_and_the_items_stand() -> None:
    end = completed([{"type": "function_call", "name": 7}])
    stream = fed(NAME, [*split(OUTPUT)[:-1], end])
    assert (stream.payload(), stream.unknown) == (OUTPUT, [end])
    assert (stream.finish_reason, stream.usage) == ("completed", {"total_tokens": 7})


def test_an_image_that_is_not_finished_is_kept_if_the_stream_is_cut() -> None:
    item = {"id": "ig_1", "type": "image_generation_call", "status": "generating", "result": None}
    rough = {"type": "response.image_generation_call.partial_image", "output_index": 0, "partial_image_b64": "QQ=="}
    assert items([added(0, item), rough]) == [item | {"result": "QQ=="}]
    whole = item | {"status": "completed", "result": "Qkc="}
    assert items([added(0, item), rough, done(0, whole)]) == [whole]


NOT_UNDERSTOOD: list[Object] = [
    {},
    {"type": "of_tomorrow"},
    {"type": "response.created", "response": "resp"},
    {"type": "response.completed", "response": {"output": "items"}},
    {"type": "response.in_progress", "response": {"usage": 7}},
    added(9, {}),
    done(9, {"type": "message", "role": "of tomorrow"}),
    done(9, {"type": "message", "content": [7]}),
    {"type": "response.output_item.done", "output_index": "9", "item": CALL},
    {"type": "response.output_item.done", "output_index": 9, "item": [CALL]},
    said("x", 0),
    said("x", 1, content_index=1),
    said("x", 1, content_index="0"),
    {"type": "response.output_text.delta", "output_index": 1, "delta": 7},
    {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "x"},
    {"type": "response.content_part.added", "output_index": 1, "content_index": 7, "part": "text"},
    {"type": "response.content_part.added", "output_index": 1, "content_index": 7, "part": {"type": "input_text"}},
    {"type": "response.content_part.done", "output_index": 1, "part": {"type": "summary_text", "text": "x"}},
    {"type": "response.output_text.annotation.added", "output_index": 1, "content_index": 0, "annotation": "x"},
    {"type": "response.audio.delta", "delta": "QQ=="},
]


@pytest.mark.parametrize("event", NOT_UNDERSTOOD, ids=range(len(NOT_UNDERSTOOD)))
def test_an_unknown_event_is_put_aside(event: Object) -> None:
    half = [one for one in split(OUTPUT) if not one["type"].endswith("done")][:-1]
    stream = fed(NAME, [*half, event])
    assert (stream.payload(), stream.unknown) == (OUTPUT, [event])
    stream.feed(completed(OUTPUT))
    assert (stream.payload(), stream.unknown) == (OUTPUT, [event])
