"""A payload is recognised as an agent service's only where that is certain."""

from __future__ import annotations

import pytest

from chatledger.formats.agent_service import CODEC, ChatHistory, ChatMessage
from chatledger.models import ChatMessage as LedgerMessage
from tests.formats.agent_service.examples import SimpleHistory, a_service_class

ROW = {"type": "human", "content": "x"}


@pytest.mark.parametrize(
    "payload",
    [
        [ROW],
        {"messages": [ROW]},
        [ChatMessage(type="human", content="x")],
        [a_service_class()(type="human", content="x")],
        SimpleHistory(messages=[ChatMessage(type="human", content="x")]),
        ChatHistory(messages=[]),
    ],
)
def test_messages_of_this_format_are_recognised(payload: object) -> None:
    assert CODEC.recognises(payload)


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"messages": []},
        None,
        "x",
        [ROW, {"role": "user", "content": "x"}],
        [{**ROW, "additional_kwargs": {}}],
        [{"type": "human", "data": {"content": "x"}}],
        [{"type": "text", "content": "x"}],
        [{"type": "human", "content": [{"type": "text", "text": "x"}]}],
        [LedgerMessage(role="user", content="x")],
    ],
)
def test_payloads_of_other_formats_are_not_recognised(payload: object) -> None:
    assert not CODEC.recognises(payload)
