"""Laws of the formats whose payload is a list: what must hold for any payload and for any stored message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats import Codec, get_codec
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import same_json
from tests.formats.agent_framework import strategies as agent_framework
from tests.formats.measured import encode, origins_in
from tests.formats.openai_chat.strategies import Json
from tests.formats.openai_responses import strategies as openai_responses
from tests.formats.pydantic_ai import strategies as pydantic_ai
from tests.formats.stored import levels, stored


@dataclass(frozen=True)
class Case:
    """`lists` are those payloads that can stand one behind the other."""

    format: str
    payloads: st.SearchStrategy[Any]
    lists: st.SearchStrategy[Any]
    misshapen: st.SearchStrategy[Any]
    residuals: st.SearchStrategy[Any]

    @property
    def codec(self) -> Codec:
        return get_codec(self.format)


def case_of(name: str, of: Any) -> Case:
    lists = getattr(of, "lists", of.payloads)
    return Case(name, of.payloads, lists, of.misshapen_payloads, of.residuals)


CASES = [
    case_of("agent-framework", agent_framework),
    case_of("openai-responses", openai_responses),
    case_of("pydantic-ai", pydantic_ai),
]
each_format = pytest.mark.parametrize("case", CASES, ids=[case.format for case in CASES])


@each_format
def test_any_payload_comes_back_as_it_was(case: Case) -> None:
    @settings(max_examples=150)
    @given(case.payloads, levels)
    def each(payload: Json, rules: RulesLevel) -> None:
        encoded = encode(case.codec, case.codec.decode(payload, rules=rules).messages)
        assert same_json(encoded.payload, payload)
        assert encoded.losses == []

    each()


@each_format
def test_any_payload_comes_back_after_the_messages_were_dumped_and_rebuilt(case: Case) -> None:
    @settings(max_examples=60)
    @given(case.payloads)
    def each(payload: Json) -> None:
        read = case.codec.decode(payload).messages
        rebuilt = [ChatMessage.model_validate(message.model_dump()) for message in read]
        assert same_json(encode(case.codec, rebuilt).payload, payload)

    each()


@each_format
def test_items_appended_one_by_one_read_as_one_list(case: Case) -> None:
    @settings(max_examples=60)
    @given(st.lists(case.lists, max_size=3))
    def each(pieces: list[list[Json]]) -> None:
        messages = [message for piece in pieces for message in case.codec.decode(piece).messages]
        assert same_json(encode(case.codec, messages).payload, [item for piece in pieces for item in piece])

    each()


@each_format
def test_any_payload_is_refused_by_name_or_comes_back(case: Case) -> None:
    @settings(max_examples=150)
    @given(case.misshapen, levels)
    def each(payload: Json, rules: RulesLevel) -> None:
        try:
            decoded = case.codec.decode(payload, rules=rules)
        except DecodeError:
            return
        assert same_json(encode(case.codec, decoded.messages).payload, payload)

    each()


@each_format
def test_recognising_never_raises(case: Case) -> None:
    @settings(max_examples=60)
    @given(case.misshapen)
    def each(payload: Json) -> None:
        assert case.codec.recognises(payload) in (True, False)

    each()


@each_format
def test_a_residual_of_another_shape_never_raises(case: Case) -> None:
    @settings(max_examples=100)
    @given(st.lists(stored([case.format], residual=case.residuals), max_size=3))
    def each(history: list[ChatMessage]) -> None:
        case.codec.decode(encode(case.codec, history).payload, rules="lenient")

    each()


@each_format
def test_messages_of_any_origin_become_messages_that_read_back(case: Case) -> None:
    @settings(max_examples=100)
    @given(st.lists(stored([None, "anthropic", "openai-chat"]), max_size=4))
    def each(history: list[ChatMessage]) -> None:
        payload = encode(case.codec, history).payload
        assert same_json(encode(case.codec, case.codec.decode(payload, rules="lenient").messages).payload, payload)

    each()


@each_format
def test_messages_that_are_as_they_were_read_have_their_origins(case: Case) -> None:
    @settings(max_examples=100)
    @given(st.lists(case.payloads, max_size=3), levels)
    def each(pieces: list[Json], rules: RulesLevel) -> None:
        history = [message for piece in pieces for message in case.codec.decode(piece, rules=rules).messages]
        written = case.codec.encode(history)
        assert [index for sources in origins_in(written) for index in sources] == list(range(len(history)))
        assert len(case.codec.decode(written.payload, rules="lenient").messages) == len(origins_in(written))

    each()
