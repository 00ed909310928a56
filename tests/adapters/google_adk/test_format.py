"""The format on ADK's real classes."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import Ledger, Payload
from chatledger.errors import EncodeError
from chatledger.formats import recognise
from chatledger.formats.google_adk import CODEC
from chatledger.testing import check_format
from tests.adapters.google_adk.events import EVENTS
from tests.adapters.google_adk.record import recorded
from tests.formats.google_adk.samples import RECORDED


def test_the_samples_are_what_the_classes_dump() -> None:
    assert recorded() == RECORDED


@pytest.mark.parametrize("name", EVENTS)
def test_objects_go_in_and_come_out_equal(name: str) -> None:
    events = EVENTS[name]
    assert recognise(events) is CODEC
    encoded = CODEC.encode(CODEC.decode(events).messages)
    assert encoded.payload == [event.model_dump(mode="json", exclude_none=True) for event in events]
    assert CODEC.as_models(encoded.payload) == events


@pytest.mark.parametrize("name", EVENTS)
def test_the_format_keeps_what_every_format_promises(name: str) -> None:
    check_format(CODEC, [RECORDED["stored"][name]])  # an object does not tell the other spelling


async def test_objects_go_through_a_ledger(ledger: Ledger) -> None:
    thread = await ledger.threads.create("t")
    events = [event for name in EVENTS for event in EVENTS[name]]
    await ledger.messages.append(thread.thread_id, Payload(events), rules="lenient")
    history = (await ledger.messages.history("t")).encode("google-adk", as_="models")
    assert history.payload == events
    assert history.losses == ()


def test_an_event_that_adk_refuses_is_told_with_its_place() -> None:
    event: dict[str, Any] = {"invocation_id": "e", "author": "a", "actions": {"later": 1}}
    payload = CODEC.encode(CODEC.decode([event]).messages).payload
    with pytest.raises(EncodeError) as refused:
        CODEC.as_models(payload)
    assert refused.value.path == "$[0]"
