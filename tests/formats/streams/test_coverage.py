"""Every event, item, block and delta that the SDKs know makes part of a payload, or is known to carry nothing.

The types are those of the SDKs' own unions, so a release that adds one fails here by its name.
"""

from __future__ import annotations

import pytest
from anthropic.types import RawContentBlockDelta, RawMessageStreamEvent, raw_content_block_start_event
from anthropic.types.beta import BetaRawContentBlockDelta, BetaRawMessageStreamEvent, beta_raw_content_block_start_event
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent

from chatledger.formats.streams.anthropic import NOTHING as NOTHING_OF_ANTHROPIC
from chatledger.formats.streams.openai_responses import NOTHING, UNPLACED
from tests.formats.streams import split_anthropic, split_responses
from tests.formats.streams.reading import Object, assembled, decoded, fed
from tests.formats.streams.sdk_examples import example, members

ITEMS = members(ResponseOutputItem)
EVENTS = members(ResponseStreamEvent)
BLOCKS = members(beta_raw_content_block_start_event.ContentBlock) | members(raw_content_block_start_event.ContentBlock)
DELTAS = members(BetaRawContentBlockDelta) | members(RawContentBlockDelta)
ANTHROPIC_EVENTS = members(BetaRawMessageStreamEvent) | members(RawMessageStreamEvent)
REFUSAL = {"type": "refusal", "refusal": "I cannot."}
MORE_PARTS = {"message": {"content": [REFUSAL, {"type": "output_text", "text": "b", "annotations": []}]}}
LIFECYCLE = {"error"} | {f"response.{step}" for step in ("queued", "in_progress", "failed", "incomplete")}
"""Events around the items: `test_openai_responses` has their cases."""


def item_of(kind: str) -> Object:
    item = example(ITEMS[kind], kind)
    for key, more in MORE_PARTS.get(kind, {}).items():
        item[key] += more
    return dict(item)


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("forms", ["all", "no deltas", "no parts done", "deltas", "parts done", "item done"])
def test_an_output_item_is_assembled_from_each_of_its_forms(kind: str, forms: str) -> None:
    item = item_of(kind)
    events = split_responses.split_item(0, item)
    parts = {
        "all": [events.added, *events.deltas, *events.parts_done, events.done],
        "no deltas": [events.added, *events.parts_done, events.done],
        "no parts done": [events.added, *events.deltas, events.done],
        "deltas": [events.added, *events.deltas],
        "parts done": [events.added, *(events.parts_done or events.deltas)],
        "item done": [events.done],
    }
    whole = decoded("openai-responses", [item])
    assert assembled("openai-responses", [split_responses.created(), *parts[forms]]) == whole
    assert assembled("openai-responses", [*parts[forms], split_responses.completed([item])]) == whole


def test_every_event_of_a_response_is_known() -> None:
    made = {event["type"] for kind in ITEMS for event in split_responses.split([item_of(kind)])}
    assert EVENTS.keys() - made - NOTHING - UNPLACED - LIFECYCLE == set()


@pytest.mark.parametrize("kind", sorted(NOTHING & EVENTS.keys()))
def test_an_event_of_progress_adds_nothing(kind: str) -> None:
    stream = fed("openai-responses", [example(EVENTS[kind], kind)])
    assert (stream.payload(), stream.unknown, stream.failure) == ([], [], None)


@pytest.mark.parametrize("kind", sorted(UNPLACED))
def test_an_event_that_no_item_can_hold_is_reported(kind: str) -> None:
    event = example(EVENTS[kind], kind)
    stream = fed("openai-responses", [event])
    assert (stream.payload(), stream.unknown) == ([], [event])


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_is_assembled_from_its_events(kind: str) -> None:
    message = {"type": "message", "role": "assistant", "content": [example(BLOCKS[kind], kind)]}
    assert assembled("anthropic", split_anthropic.split(message)) == decoded("anthropic", [message])


def test_every_event_and_every_delta_of_anthropic_is_known() -> None:
    message = {"role": "assistant", "content": [example(block, kind) for kind, block in BLOCKS.items()]}
    events = split_anthropic.split(message)
    assert ANTHROPIC_EVENTS.keys() - {event["type"] for event in events} - NOTHING_OF_ANTHROPIC == set()
    made = {event["delta"]["type"] for event in events if event["type"] == "content_block_delta"}
    assert DELTAS.keys() - made == set()
