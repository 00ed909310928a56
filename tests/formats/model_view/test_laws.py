"""Laws of the model view of any history, for every provider."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger import ChatMessage
from chatledger.errors import NothingToSend
from chatledger.formats import get_codec
from chatledger.formats.model_view import get_provider, model_view, provider_names, repair
from chatledger.models.json import same_json
from tests.formats.anthropic import strategies as anthropic
from tests.formats.measured import encode
from tests.formats.model_view.histories import histories
from tests.formats.openai_chat import strategies as openai_chat
from tests.formats.openai_responses import strategies as openai_responses
from tests.formats.provider_checker import refusals
from tests.formats.sdk_types import validate

providers = pytest.mark.parametrize("provider", provider_names())


def body(provider: str, payload: Any) -> dict[str, Any]:
    """The payload in a request of the provider."""
    if isinstance(payload, dict):
        return {"input": [], **payload} if provider == "openai-responses" else payload
    return {"input" if provider == "openai-responses" else "messages": payload}


def view(provider: str, messages: list[ChatMessage]) -> tuple[Any, list[Any]]:
    seen = view_or_error(provider, messages)
    if isinstance(seen, NothingToSend):
        reject()
    return seen


def view_or_error(provider: str, messages: list[ChatMessage]) -> tuple[Any, list[Any]] | NothingToSend:
    try:
        encoded, repairs = model_view(get_codec(provider), messages)
    except NothingToSend as error:
        return error
    return encoded.payload, repairs


@providers
@settings(max_examples=80)
@given(history=histories())
def test_the_provider_takes_it_and_what_it_would_have_taken_is_untouched(
    provider: str, history: list[ChatMessage]
) -> None:
    stored = encode(get_codec(provider), history).payload
    payload, repairs = view(provider, history)
    assert refusals(provider, body(provider, payload)) == []
    validate(provider, payload)
    codes = {repair.code for repair in repairs}
    if refusals(provider, body(provider, stored)) == [] and is_valid(provider, stored):
        assert codes <= {"custom", "partial", *unseen(provider, history)}
    if not codes:
        assert same_json(payload, stored)


@providers
@settings(max_examples=60)
@given(history=histories())
def test_a_view_has_messages_or_gives_the_reason_for_each(provider: str, history: list[ChatMessage]) -> None:
    seen = view_or_error(provider, history)
    if isinstance(seen, NothingToSend):
        assert [seq for seq, _ in seen.reasons] == [message.seq for message in history]
    else:
        assert body(provider, seen[0])["input" if provider == "openai-responses" else "messages"] != []


@providers
@settings(max_examples=60)
@given(history=histories())
def test_a_repaired_history_needs_no_repair(provider: str, history: list[ChatMessage]) -> None:
    repaired, repairs = repair(get_provider(provider), history)
    assert repair(get_provider(provider), repaired) == (repaired, [])
    assert {repair.seq for repair in repairs} <= {message.seq for message in history}


@providers
@settings(max_examples=60)
@given(history=histories())
def test_a_history_sent_to_the_provider_needs_no_repair(provider: str, history: list[ChatMessage]) -> None:
    payload, _ = view(provider, history)
    again, repairs = view(provider, get_codec(provider).decode(payload).messages)
    assert repairs == []
    assert same_json(again, payload)


def is_valid(provider: str, payload: Any) -> bool:
    try:
        validate(provider, payload)
    except ValidationError:
        return False
    return True


def unseen(provider: str, history: list[ChatMessage]) -> set[str]:
    """The repairs of what the checker does not see in the stored view: arguments that its conversion wraps for
    Anthropic, and an empty list of calls, which servers other than OpenAI's take.
    """
    if provider == "openai-chat":
        return {"empty"} if any(message.tool_calls == [] for message in history) else set()
    losses = encode(get_codec(provider), history).losses if provider == "anthropic" else []
    return {loss.code for loss in losses} & {"arguments"}


PAYLOADS: dict[str, st.SearchStrategy[Any]] = {
    "anthropic": anthropic.payloads,
    "openai-chat": st.lists(openai_chat.messages, max_size=5),
    "openai-responses": openai_responses.payloads,
}


@providers
@settings(max_examples=60)
@given(data=st.data())
def test_messages_of_the_format_itself_are_repaired_once(provider: str, data: st.DataObject) -> None:
    given_payload = data.draw(PAYLOADS[provider])
    payload, _ = view(provider, stored(provider, given_payload))
    assert refusals(provider, body(provider, payload)) == []
    again, repairs = view(provider, stored(provider, payload))
    assert repairs == []
    assert same_json(again, payload)


def stored(provider: str, payload: Any) -> list[ChatMessage]:
    messages = get_codec(provider).decode(payload, rules="lenient").messages
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
