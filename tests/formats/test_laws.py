"""The laws of every codec: what must hold for any payload of its format and for any stored message.

A format adds only its samples, its strategies with their TRIPS, and the tests of what is peculiar to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger.errors import FormatError
from chatledger.formats import Codec, ModelCodec, format_names, get_codec, recognise
from chatledger.formats.losses.measure import write
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import MAX_DEPTH, json_problem, same_json
from tests.formats.measured import encode, origins_in
from tests.formats.openai_chat.strategies import Json, json_values
from tests.formats.round_trips import ROUND_TRIPS, RoundTrip
from tests.formats.stored import levels, stored
from tests.hostile.payloads import Lying, mutated, places_of

each_format = pytest.mark.parametrize("case", ROUND_TRIPS, ids=[case.format for case in ROUND_TRIPS])
WITH_OBJECTS = [case for case in ROUND_TRIPS if case.levels is not None]
each_format_with_objects = pytest.mark.parametrize("case", WITH_OBJECTS, ids=[case.format for case in WITH_OBJECTS])
SAMPLES = [(case, name) for case in ROUND_TRIPS for name in case.samples]


def codec_of(case: RoundTrip) -> Codec:
    return get_codec(case.format)


def examples(count: int) -> Callable[[Any], Any]:
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


def rested(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages after they rested as plain data."""
    return [ChatMessage.model_validate(message.model_dump()) for message in messages]


def undressed(value: Any) -> Any:
    """The value, with what an object dumps in the place of each object."""
    if isinstance(value, Lying):
        return undressed(value.dump)
    if isinstance(value, dict):
        return {key: undressed(child) for key, child in value.items()}
    return list(map(undressed, value)) if isinstance(value, list) else value


def test_every_format_obeys_the_laws() -> None:
    assert sorted(case.format for case in ROUND_TRIPS) == format_names()


@each_format
def test_any_payload_comes_back_as_it_was(case: RoundTrip) -> None:
    @examples(150)
    @given(case.payloads, levels)
    def each(payload: Any, rules: RulesLevel) -> None:
        decoded = codec_of(case).decode(payload, rules=rules)
        encoded = encode(codec_of(case), decoded.messages)
        assert same_json(encoded.payload, case.written(payload))
        assert decoded.losses == []
        assert encoded.losses == []

    each()


@each_format
def test_any_payload_comes_back_after_the_messages_were_dumped_and_rebuilt(case: RoundTrip) -> None:
    @examples(60)
    @given(case.payloads)
    def each(payload: Any) -> None:
        read = codec_of(case).decode(payload).messages
        assert list(map(repr, rested(read))) == list(map(repr, read))  # in which NaN equals NaN
        assert same_json(encode(codec_of(case), rested(read)).payload, case.written(payload))

    each()


@each_format_with_objects
def test_any_objects_come_back_as_equal_ones(case: RoundTrip) -> None:
    codec = cast(ModelCodec, codec_of(case))

    @examples(100)
    @given(st.lists(case.messages, max_size=4))
    def each(objects: list[Any]) -> None:
        back = case.inside(codec.as_models(codec.encode(rested(codec.decode(objects).messages)).payload))
        assert list(map(type, back)) == list(map(type, objects))
        assert repr(back) == repr(objects)
        assert list(map(case.levels, back)) == list(map(case.levels, objects))  # type: ignore[arg-type]

    each()


@each_format
def test_payloads_appended_one_by_one_read_as_one_list(case: RoundTrip) -> None:
    @examples(60)
    @given(st.lists(case.lists, max_size=3))
    def each(pieces: list[list[Any]]) -> None:
        messages = [message for piece in pieces for message in codec_of(case).decode(piece).messages]
        payload = case.written([item for piece in pieces for item in piece])
        assert same_json(encode(codec_of(case), messages).payload, payload)

    each()


@each_format
def test_any_payload_is_refused_by_name_or_comes_back(case: RoundTrip) -> None:
    @examples(150)
    @given(case.misshapen | mutated(case.format), levels)
    def each(payload: Any, rules: RulesLevel) -> None:
        try:
            decoded = codec_of(case).decode(payload, rules=rules)
        except FormatError:
            return
        if not decoded.losses:
            assert same_json(encode(codec_of(case), decoded.messages).payload, case.written(undressed(payload)))

    each()


@each_format
def test_recognising_never_raises(case: RoundTrip) -> None:
    @examples(60)
    @given(case.misshapen | mutated(case.format) | json_values)
    def each(payload: Any) -> None:
        assert codec_of(case).recognises(payload) in (True, False)

    each()


@st.composite
def odd_residuals(draw: st.DrawFn, case: RoundTrip) -> Json:
    """A residual that the format wrote, with other values in one or two of its places."""
    read = codec_of(case).decode(draw(case.payloads)).messages
    root = [deepcopy(message.residual) for message in read] or [None]
    for _ in range(draw(st.integers(1, 2))):
        places = list(places_of(root))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        container[key] = draw(json_values)
    return root[draw(st.integers(0, len(root) - 1))]


@each_format
def test_a_residual_of_another_shape_never_raises(case: RoundTrip) -> None:
    messages = stored([case.format], residual=case.residuals | odd_residuals(case))

    @examples(100)
    @given(st.lists(messages, max_size=3))
    def each(history: list[ChatMessage]) -> None:
        codec_of(case).decode(encode(codec_of(case), history).payload, rules="lenient")

    each()


def of_others(case: RoundTrip) -> st.SearchStrategy[list[ChatMessage]]:
    """Messages that no reader made, of other formats and of none."""
    names = (None, "anthropic", "openai-chat", "openai-responses", "kosong/0.30", "qwen-agent", "agent-service")
    return st.lists(stored([name for name in names if name != case.format]), max_size=4)


@each_format
def test_messages_of_any_origin_become_messages_that_read_back(case: RoundTrip) -> None:
    @examples(100)
    @given(of_others(case))
    def each(history: list[ChatMessage]) -> None:
        payload = encode(codec_of(case), history).payload
        assert json_problem(payload, max_depth=MAX_DEPTH) is None
        read = codec_of(case).decode(payload, rules="lenient").messages
        assert same_json(encode(codec_of(case), read).payload, payload)

    each()


@each_format_with_objects
def test_objects_can_hold_messages_of_any_origin(case: RoundTrip) -> None:
    @examples(100)
    @given(of_others(case))
    def each(history: list[ChatMessage]) -> None:
        payload = undressed(encode(codec_of(case), history).payload)
        assert same_json(case.written(cast(ModelCodec, codec_of(case)).as_models(payload)), payload)

    each()


@each_format
def test_messages_that_are_as_they_were_read_have_their_origins(case: RoundTrip) -> None:
    @examples(100)
    @given(st.lists(case.payloads, max_size=3), levels)
    def each(pieces: list[Any], rules: RulesLevel) -> None:
        history = [message for piece in pieces for message in codec_of(case).decode(piece, rules=rules).messages]
        written = codec_of(case).encode(history)
        assert [index for sources in origins_in(written) for index in sources] == list(range(len(history)))
        assert len(codec_of(case).decode(written.payload, rules="lenient").messages) == len(origins_in(written))

    each()


@each_format
def test_any_window_of_messages_is_written_with_its_origins(case: RoundTrip) -> None:
    @examples(60)
    @given(case.payloads, st.integers(0, 6), st.integers(1, 7))
    def each(payload: Any, start: int, count: int) -> None:
        window = codec_of(case).decode(payload).messages[start : start + count]
        written = write(codec_of(case), window)
        assert [index for sources in origins_in(written) for index in sources] == list(range(len(window)))
        assert len(codec_of(case).decode(written.payload, rules="lenient").messages) == len(origins_in(written))

    each()


@pytest.mark.parametrize(("case", "name"), SAMPLES, ids=[f"{case.format}: {name}" for case, name in SAMPLES])
def test_a_sample_is_recognised_and_comes_back(case: RoundTrip, name: str) -> None:
    payload = case.samples[name]
    assert recognise(payload) is codec_of(case)
    encoded = encode(codec_of(case), codec_of(case).decode(payload).messages)
    assert same_json(encoded.payload, payload)
    assert encoded.losses == []
