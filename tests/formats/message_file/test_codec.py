"""Items stored and read come back equal."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.message_file import CODEC
from chatledger.models.json import same_json
from tests.formats.measured import encode
from tests.formats.message_file.examples import stored, weather
from tests.formats.message_file.strategies import items


@given(st.lists(items, max_size=3))
@settings(max_examples=80)
def test_objects_come_back_equal_and_without_losses(payload: list[Any]) -> None:
    encoded = encode(CODEC, stored(CODEC.decode(payload).messages))
    assert same_json(encoded.payload, [item.to_dict() for item in payload])
    assert [repr(item) for item in CODEC.as_models(encoded.payload)] == [repr(item) for item in payload]
    assert encoded.losses == []


@given(st.lists(items, max_size=3))
@settings(max_examples=50)
def test_dicts_come_back_before_they_are_stored(payload: list[Any]) -> None:
    dicts = [item.to_dict() for item in payload]
    assert same_json(encode(CODEC, CODEC.decode(dicts).messages).payload, dicts)


def test_the_kind_that_came_in_is_known() -> None:
    assert CODEC.given_as(CODEC.decode([weather()]).messages) == "models"
    assert CODEC.given_as(CODEC.decode([weather().to_dict()]).messages) == "dicts"
