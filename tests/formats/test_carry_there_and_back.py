"""X as Y and back as X with `carry`: equal where Y has a free slot, and the same as without it where Y has none.

A message for the screen has no row in Qwen-Agent, which is sent to a model whole; it is the only one that stays behind.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats import format_names, get_codec
from chatledger.models.json import same_json
from tests.formats.measured import encode
from tests.formats.round_trips import ROUND_TRIPS, RoundTrip, dumped

CARRIERS = ("agent-service", "qwen-agent")
WITHOUT_SLOT = sorted(set(format_names()) - set(CARRIERS))
PAIRS = [(trip, carrier) for trip in ROUND_TRIPS for carrier in CARRIERS if trip.format != carrier]


def payloads(trip: RoundTrip) -> st.SearchStrategy[Any]:
    return st.lists(trip.messages.map(dumped), min_size=1, max_size=3).map(trip.around)


@pytest.mark.parametrize(("trip", "carrier"), PAIRS, ids=[f"{trip.format}-{carrier}" for trip, carrier in PAIRS])
@settings(max_examples=40)
@given(data=st.data())
def test_a_payload_comes_back_from_a_format_that_carries(trip: RoundTrip, carrier: str, data: st.DataObject) -> None:
    theirs, ours = get_codec(carrier), get_codec(trip.format)
    messages = ours.decode(data.draw(payloads(trip)), rules="lenient").messages
    spoken = [message for message in messages if message.role != "custom" or carrier == "agent-service"]
    carried = encode(theirs, spoken, carry=True)
    back = theirs.decode(carried.payload, rules="lenient").messages
    assert carried.losses == []
    assert same_json(encode(ours, back).payload, encode(ours, spoken).payload)


@pytest.mark.parametrize("target", WITHOUT_SLOT)
@settings(max_examples=15)
@given(data=st.data())
def test_carry_changes_nothing_where_no_slot_is_free(target: str, data: st.DataObject) -> None:
    trip = data.draw(st.sampled_from(ROUND_TRIPS))
    messages = get_codec(trip.format).decode(data.draw(payloads(trip)), rules="lenient").messages
    plain, carried = (encode(get_codec(target), messages, carry=carry) for carry in (False, True))
    assert repr(carried) == repr(plain)
