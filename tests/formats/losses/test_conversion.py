"""Every format written from messages of any origin: never an exception, and the losses are exactly the differences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats import format_names, get_codec
from chatledger.formats.losses.codes import CODES
from chatledger.models import ChatMessage
from tests.formats.any_messages import conversations, numbered
from tests.formats.losses.differences import problems
from tests.formats.measured import encode


@pytest.mark.parametrize("target", format_names())
@settings(max_examples=60)
@given(data=st.data(), carry=st.booleans())
def test_the_losses_are_the_differences(target: str, data: st.DataObject, carry: bool) -> None:
    messages = data.draw(conversations(target))
    codec = get_codec(target)
    if messages and all(message.format == target for message in messages):
        messages = read_as_one(target, messages)
    encoded = encode(codec, messages, carry=carry)
    assert {loss.code for loss in encoded.losses} <= CODES.keys()
    back = codec.decode(encoded.payload, rules="lenient").messages
    assert problems(messages, back, encoded.origins, encoded.losses, target) == []


def read_as_one(target: str, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Messages of several payloads as those of one: what answers what is found within a payload."""
    codec = get_codec(target)
    return numbered(codec.decode(encode(codec, messages).payload, rules="lenient").messages)
