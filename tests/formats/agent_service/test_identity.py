from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.agent_service import CODEC, ChatHistory, ChatMessage
from chatledger.formats.codec import Codec
from chatledger.models import ChatMessage as LedgerMessage


def stored(messages: list[LedgerMessage]) -> list[LedgerMessage]:
    return [LedgerMessage.model_validate(message.model_dump()) for message in messages]


def back(payload: object) -> Any:
    return CODEC.encode(stored(CODEC.decode(payload).messages)).payload


def test_a_default_that_was_filled_in_place_comes_back_and_stays_unset() -> None:
    message = ChatMessage(type="ai", content="hi")
    message.custom_data["task"] = "done"
    [again] = CODEC.as_models(back([message])).messages
    assert (again, again.model_fields_set) == (message, {"type", "content"})


def test_a_run_named_by_the_append_comes_back_with_every_message() -> None:
    rows = [{"type": "human", "content": "a"}, {"type": "ai", "content": "b", "run_id": None}]
    messages = [message.model_copy(update={"run_id": "run-7"}) for message in CODEC.decode(rows).messages]
    assert CODEC.encode(messages).payload == {
        "messages": [
            {"type": "human", "content": "a", "run_id": "run-7"},
            {"type": "ai", "content": "b", "run_id": "run-7"},
        ]
    }


def test_a_run_named_by_the_append_counts_as_given() -> None:
    [message] = CODEC.decode([ChatMessage(type="human", content="a")]).messages
    payload = CODEC.encode([message.model_copy(update={"run_id": "run-7"})]).payload
    [again] = CODEC.as_models(payload).messages
    assert again.model_dump(exclude_unset=True) == {"type": "human", "content": "a", "run_id": "run-7"}


def test_surrogates_and_nul_come_back() -> None:
    row = {"type": "ai", "content": "\ud800\0", "custom_data": {"\udfff": "\0"}}
    assert back([row]) == {"messages": [row]}


def test_an_ordinary_message_needs_no_residual() -> None:
    call = {"name": "search", "args": {"q": 1}, "id": "call_1", "type": "tool_call"}
    row = ChatMessage.model_validate({"type": "ai", "content": "", "tool_calls": [call]}).model_dump()
    assert CODEC.decode([row]).messages[0].residual is None


def test_the_codec_is_one_to_the_ledger_and_gives_models_by_default() -> None:
    codec: Codec = CODEC
    assert (codec.name, CODEC.given_as([])) == ("agent-service", "models")


@pytest.mark.parametrize("history", [ChatHistory(messages=[]), [], {"messages": []}, ()])
def test_an_empty_history_has_no_message(history: object) -> None:
    assert CODEC.decode(history).messages == []
