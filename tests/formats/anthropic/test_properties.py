"""Properties of anthropic beyond the laws of `test_laws.py`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.anthropic import CODEC
from chatledger.formats.anthropic.codec import write_payload
from chatledger.models import ChatMessage
from chatledger.models.json import same_json
from tests.formats.anthropic.sdk import validate
from tests.formats.anthropic.strategies import residuals
from tests.formats.measured import encode, origins_in
from tests.formats.stored import stored


@settings(max_examples=150)
@given(st.lists(stored([None, "openai-chat", "kosong/0.30"]), max_size=4))
def test_messages_of_any_format_are_accepted_by_the_api(history: list[ChatMessage]) -> None:
    payload = encode(CODEC, history).payload
    validate(payload)
    assert same_json(encode(CODEC, CODEC.decode(payload, rules="lenient").messages).payload, payload)


@settings(max_examples=150)
@given(st.lists(stored([None, "anthropic", "openai-chat"], residual=residuals), max_size=5))
def test_origins_name_the_source_of_each_message_that_is_read_back(history: list[ChatMessage]) -> None:
    written = write_payload(history)
    read = CODEC.decode(written.payload, rules="lenient").messages
    assert len(read) == len(origins_in(written))
    for message, places in zip(read, origins_in(written), strict=True):
        roles = {history[place].role for place in places}
        assert message.role in roles or roles & {"developer", "function", "narrator"}
