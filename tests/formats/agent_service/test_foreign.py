"""Messages of other formats carried through this one, in custom_data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from chatledger.formats.agent_service import CODEC
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import TextPart
from chatledger.models.json import same_json
from tests.formats.agent_service import strategies
from tests.formats.agent_service.examples import a_message, encoded, said
from tests.formats.measured import encode


@given(strategies.foreign_messages)
@settings(max_examples=100, deadline=None)
def test_a_carried_message_comes_back_whole(message: LedgerMessage) -> None:
    result = encode(CODEC, [message], carry=True)
    history = CODEC.as_models(result.payload)
    [again] = CODEC.decode(history.model_dump()).messages
    unsaid = again.model_copy(update={"format": message.format})
    assert [loss.code for loss in result.losses] == (["run-id"] if message.run_id == "" else [])
    assert same_json(said(unsaid), said(message) | {"run_id": message.run_id or None})


def test_a_foreign_residual_travels_in_the_custom_data_and_comes_back() -> None:
    message = LedgerMessage(role="user", content="hi", format="openai-chat", residual={"extra": {"name": "ada"}})
    written, losses = encoded(message, carry=True)
    carried = {"format": "openai-chat", "residual": {"extra": {"name": "ada"}}}
    assert (written, losses) == (a_message(type="human", content="hi", custom_data={"chatledger": carried}), [])
    assert CODEC.decode([written]).messages == [message]


def test_a_carried_message_written_with_carry_is_the_same_dict() -> None:
    message = LedgerMessage(role="system", content=[TextPart(text="hi")], format="kosong/0.30")
    payload = encode(CODEC, [message], carry=True).payload
    assert encode(CODEC, CODEC.decode(payload).messages, carry=True).payload == payload


@pytest.mark.parametrize(
    "data",
    [
        {"format": "x", "residual": 1, "other": 2},
        {"format": "x", "state": "lost"},
        {"format": "x", "content": "hi"},
        {"residual": 1},
        7,
    ],
)
def test_data_that_only_looks_carried_stays_data(data: Any) -> None:
    source = a_message(type="human", content="hi", custom_data={"chatledger": data})
    [message] = CODEC.decode([source]).messages
    assert (message.format, message.custom_data) == ("agent-service", {"chatledger": data})
    assert encoded(message) == (source, [])
