"""What must hold of agent-framework for any payload and for any stored message."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats.agent_framework import CODEC
from chatledger.formats.agent_framework.codec import write_payload
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import same_json
from tests.formats.agent_framework.strategies import misshapen_payloads, payloads
from tests.formats.openai_chat.strategies import Json, json_values
from tests.formats.openai_chat.test_properties import inner_residuals, stored

levels: st.SearchStrategy[RulesLevel] = st.sampled_from(["strict", "lenient"])
sections = json_values | st.fixed_dictionaries(
    {},
    optional={
        "json": st.just(True) | json_values,
        "extra": json_values | st.just({"role": "tool", "contents": 1}),
        "keys": json_values | st.just(["type", "role"]),
        "form": st.just("bare"),
    },
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True),
        "head": sections,
        "answer": sections,
        "parts": inner_residuals | st.fixed_dictionaries({"0": sections}),
        "calls": inner_residuals,
        "calls_at": st.lists(st.integers(-1, 2), max_size=2) | json_values,
    },
)


@settings(max_examples=60)
@given(payloads, levels)
def test_any_payload_comes_back_as_it_was(payload: Json, rules: RulesLevel) -> None:
    encoded = CODEC.encode(CODEC.decode(payload, rules=rules).messages)
    assert same_json(encoded.payload, payload)
    assert encoded.losses == []


@settings(max_examples=60)
@given(payloads)
def test_any_payload_comes_back_after_the_messages_were_dumped_and_rebuilt(payload: Json) -> None:
    rebuilt = [ChatMessage.model_validate(message.model_dump()) for message in CODEC.decode(payload).messages]
    assert same_json(CODEC.encode(rebuilt).payload, payload)


@settings(max_examples=60)
@given(st.lists(payloads, max_size=3))
def test_what_is_appended_piece_by_piece_reads_as_one_list(pieces: list[list[Json]]) -> None:
    messages = [message for piece in pieces for message in CODEC.decode(piece).messages]
    assert same_json(CODEC.encode(messages).payload, [item for piece in pieces for item in piece])


@settings(max_examples=60)
@given(misshapen_payloads, levels)
def test_whatever_is_given_is_refused_by_name_or_comes_back(payload: Json, rules: RulesLevel) -> None:
    try:
        decoded = CODEC.decode(payload, rules=rules)
    except DecodeError:
        return
    assert same_json(CODEC.encode(decoded.messages).payload, payload)


@settings(max_examples=60)
@given(misshapen_payloads)
def test_recognising_never_raises(payload: Json) -> None:
    assert CODEC.recognises(payload) in (True, False)


@settings(max_examples=60)
@given(st.lists(stored(["agent-framework"], residual=residuals), max_size=3))
def test_a_residual_of_another_shape_never_raises(history: list[ChatMessage]) -> None:
    CODEC.decode(CODEC.encode(history).payload, rules="lenient")


@settings(max_examples=60)
@given(st.lists(stored([None, "anthropic", "openai-chat"]), max_size=4))
def test_messages_of_any_origin_become_messages_that_read_back(history: list[ChatMessage]) -> None:
    payload = CODEC.encode(history).payload
    assert same_json(CODEC.encode(CODEC.decode(payload, rules="lenient").messages).payload, payload)


@settings(max_examples=60)
@given(st.lists(payloads, max_size=3), levels)
def test_messages_that_are_as_they_were_read_are_not_measured(pieces: list[Json], rules: RulesLevel) -> None:
    history = [message for piece in pieces for message in CODEC.decode(piece, rules=rules).messages]
    written = write_payload(history)
    assert written.as_read
    assert written.origins == [(index,) for index in range(len(history))]
    assert len(CODEC.decode(written.payload, rules="lenient").messages) == len(history)
