"""What must hold of anthropic for any payload and for any stored message."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.anthropic import CODEC
from chatledger.models import ChatMessage
from chatledger.models.json import same_json
from tests.formats.anthropic.strategies import messages, payloads
from tests.formats.openai_chat_strategies import Json


@settings(max_examples=200)
@given(payloads)
def test_any_payload_comes_back_as_it_was(payload: dict[str, Json]) -> None:
    encoded = CODEC.encode(CODEC.decode(payload).messages)
    assert same_json(encoded.payload, payload)
    assert encoded.losses == []


@settings(max_examples=100)
@given(st.lists(messages, max_size=3))
def test_a_list_comes_back_as_the_messages_of_a_request(payload: list[Json]) -> None:
    assert same_json(CODEC.encode(CODEC.decode(payload).messages).payload, {"messages": payload})


@settings(max_examples=100)
@given(payloads)
def test_any_payload_comes_back_after_the_messages_were_dumped_and_rebuilt(payload: dict[str, Json]) -> None:
    rebuilt = [ChatMessage.model_validate(message.model_dump()) for message in CODEC.decode(payload).messages]
    assert same_json(CODEC.encode(rebuilt).payload, payload)
