"""Properties of openai-responses beyond the laws of `test_laws.py`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.openai_responses import CODEC
from chatledger.formats.openai_responses.codec import write_payload
from chatledger.models import ChatMessage
from chatledger.models.json import same_json
from tests.formats.measured import encode, origins_in
from tests.formats.openai_chat.strategies import Json
from tests.formats.openai_responses.strategies import payloads, residuals
from tests.formats.stored import stored


def first(history: list[ChatMessage]) -> ChatMessage:
    return history[0] if history else ChatMessage(role="user", content="")


@st.composite
def mixed_histories(draw: st.DrawFn) -> list[ChatMessage]:
    """Messages that were read, that programs created or edited, and that came from other formats, in one thread."""
    read = st.builds(lambda payload: CODEC.decode(payload, rules="lenient").messages, payloads)
    made = st.lists(stored([None, "anthropic", "openai-responses"], residual=st.none() | residuals), max_size=2)
    return [message for piece in draw(st.lists(read | made, max_size=3)) for message in piece]


@settings(max_examples=100)
@given(mixed_histories())
def test_each_message_that_reads_back_has_its_origins(history: list[ChatMessage]) -> None:
    written = write_payload(history)
    back = CODEC.decode(written.payload, rules="lenient").messages
    assert len(origins_in(written)) == len(back)
    named = {index for sources in origins_in(written) for index in sources}
    assert all(message.role == "custom" for index, message in enumerate(history) if index not in named)


@settings(max_examples=150)
@given(stored([None, "anthropic", "openai-responses"], residual=st.none() | residuals) | mixed_histories().map(first))
def test_a_message_without_a_loss_reads_back_as_it_was(message: ChatMessage) -> None:
    encoded = encode(CODEC, [message])
    if not encoded.losses:
        [back] = CODEC.decode(encoded.payload, rules="lenient").messages
        assert same_json(said(back), said(message))


def said(message: ChatMessage) -> Json:
    ours = {"format", "residual", "seq", "violations"}
    return message.model_dump(exclude=ours)
