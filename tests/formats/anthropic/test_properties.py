"""Properties of anthropic for any payload and any stored message."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats.anthropic import CODEC
from chatledger.formats.anthropic.codec import write_payload
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import same_json
from tests.formats.anthropic.sdk import validate
from tests.formats.anthropic.strategies import messages, misshapen_payloads, payloads
from tests.formats.measured import encode, origins_in
from tests.formats.openai_chat.strategies import Json, json_values
from tests.formats.stored import levels, stored

of_part = st.dictionaries(st.sampled_from(["keys", "extra", "source"]), json_values | st.just(["type", "text", "x"]))
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={
        "continues": st.just(True) | json_values,
        "listed": st.just(True) | json_values,
        "parts": st.dictionaries(st.sampled_from(["0", "1"]), of_part) | json_values,
        "calls": st.dictionaries(st.sampled_from(["0", "1"]), of_part) | json_values,
        "block": of_part | json_values,
        "calls_at": st.lists(st.integers(-1, 3), max_size=2) | json_values,
        "rest_at": st.lists(st.integers(-1, 3), max_size=2) | json_values,
        "null": st.sampled_from(["null", "absent"]) | json_values,
        "keys": st.lists(st.sampled_from(["role", "content", "type", "x"])) | json_values,
        "extra": st.dictionaries(st.sampled_from(["role", "content", "type", "x"]), json_values) | json_values,
        "payload": st.fixed_dictionaries(
            {
                "keys": st.lists(st.sampled_from(["messages", "system", "x"])),
                "extra": st.dictionaries(st.text(), json_values),
            }
        )
        | json_values,
    },
)


@settings(max_examples=100)
@given(payloads)
def test_any_payload_comes_back_as_it_was(payload: dict[str, Json]) -> None:
    encoded = encode(CODEC, CODEC.decode(payload).messages)
    assert same_json(encoded.payload, payload)
    assert encoded.losses == []


@settings(max_examples=60)
@given(st.lists(messages, max_size=3))
def test_a_list_comes_back_as_the_messages_of_a_request(payload: list[Json]) -> None:
    assert same_json(encode(CODEC, CODEC.decode(payload).messages).payload, {"messages": payload})


@settings(max_examples=60)
@given(payloads)
def test_any_payload_comes_back_after_the_messages_were_dumped_and_rebuilt(payload: dict[str, Json]) -> None:
    rebuilt = [ChatMessage.model_validate(message.model_dump()) for message in CODEC.decode(payload).messages]
    assert same_json(encode(CODEC, rebuilt).payload, payload)


@settings(max_examples=60)
@given(payloads, st.integers(0, 6))
def test_any_end_of_a_payload_is_written(payload: dict[str, Json], start: int) -> None:
    end = CODEC.decode(payload).messages[start:]
    assert len(CODEC.decode(encode(CODEC, end).payload).messages) == len(end)


@settings(max_examples=100)
@given(json_values | misshapen_payloads, levels)
def test_any_payload_is_refused_by_name_or_comes_back(payload: Json, rules: RulesLevel) -> None:
    try:
        decoded = CODEC.decode(payload, rules=rules)
    except DecodeError:
        return
    if not decoded.losses:
        around = {"messages": payload} if isinstance(payload, list) else payload
        assert same_json(encode(CODEC, decoded.messages).payload, around)


@settings(max_examples=60)
@given(json_values | misshapen_payloads | st.lists(json_values))
def test_recognising_never_raises(payload: Json) -> None:
    assert CODEC.recognises(payload) in (True, False)


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


@settings(max_examples=60)
@given(payloads, payloads)
def test_origins_of_payloads_in_a_row_are_their_messages(first: dict[str, Json], second: dict[str, Json]) -> None:
    """Also of two in a row; only a second prompt that follows the first at once becomes one with it."""
    messages = [*CODEC.decode(first).messages, *CODEC.decode(second).messages]
    written = write_payload(messages)
    assert [place for places in origins_in(written) for place in places] == list(range(len(messages)))
    assert len(CODEC.decode(written.payload, rules="lenient").messages) == len(origins_in(written))
