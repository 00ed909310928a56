"""What must hold of openai-responses for any payload and for any stored message."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats.openai_responses import CODEC
from chatledger.formats.openai_responses.codec import write_payload
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import same_json
from tests.formats.openai_chat.strategies import Json, json_values
from tests.formats.openai_chat.test_properties import inner_residuals, stored
from tests.formats.openai_responses.strategies import items, lists, payloads

levels: st.SearchStrategy[RulesLevel] = st.sampled_from(["strict", "lenient"])
misshapen = st.dictionaries(
    st.sampled_from(["type", "role", "content", "name", "call_id", "summary", "output", "arguments", "id"]),
    json_values
    | st.sampled_from(
        ["user", "message", "function_call", "reasoning", [{"type": "input_text"}], [{"type": "refusal"}]]
    ),
)
forms = st.sampled_from(["function_call", "custom_tool_call", "custom_tool_call_output", []])
numbers = st.none() | st.integers(-1, 2)
entries = st.fixed_dictionaries(
    {"kind": st.sampled_from(["message", "call", "output", "opaque", "reasoning", "instructions"]) | json_values},
    optional={
        "take": numbers | json_values,
        "form": forms | json_values,
        "kept": inner_residuals,
        "parts": inner_residuals,
        "summary": st.lists(numbers, max_size=2) | json_values,
    },
)
shapes = st.dictionaries(
    st.sampled_from(["keys", "text"]), json_values | st.just(["instructions", "input"]) | st.just(True)
)
residuals = json_values | st.fixed_dictionaries(
    {},
    optional={"items": json_values | st.lists(entries, max_size=3) | inner_residuals, "payload": shapes | json_values},
)


@settings(max_examples=150)
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
@given(st.lists(lists, max_size=3))
def test_what_is_appended_piece_by_piece_reads_as_one_list(pieces: list[list[Json]]) -> None:
    messages = [message for piece in pieces for message in CODEC.decode(piece).messages]
    assert same_json(CODEC.encode(messages).payload, [item for piece in pieces for item in piece])


@settings(max_examples=100)
@given(json_values | st.lists(misshapen | json_values, max_size=3), levels)
def test_whatever_is_given_is_refused_by_name_or_comes_back(payload: Json, rules: RulesLevel) -> None:
    try:
        decoded = CODEC.decode(payload, rules=rules)
    except DecodeError:
        return
    assert same_json(CODEC.encode(decoded.messages).payload, payload)


@settings(max_examples=60)
@given(json_values | st.lists(misshapen | items | json_values, max_size=2))
def test_recognising_never_raises(payload: Json) -> None:
    assert CODEC.recognises(payload) in (True, False)


@settings(max_examples=100)
@given(st.lists(stored(["openai-responses"], residual=residuals), max_size=3))
def test_a_residual_of_another_shape_never_raises(history: list[ChatMessage]) -> None:
    CODEC.decode(CODEC.encode(history).payload, rules="lenient")


@settings(max_examples=100)
@given(st.lists(stored([None, "anthropic", "openai-chat"]), max_size=4))
def test_messages_of_any_origin_become_items_that_read_back(history: list[ChatMessage]) -> None:
    payload = CODEC.encode(history).payload
    assert same_json(CODEC.encode(CODEC.decode(payload, rules="lenient").messages).payload, payload)


def first(history: list[ChatMessage]) -> ChatMessage:
    return history[0] if history else ChatMessage(role="user", content="")


@st.composite
def mixed_histories(draw: st.DrawFn) -> list[ChatMessage]:
    """What was read, what programs made or edited, and what came from elsewhere, in one thread."""
    read = st.builds(lambda payload: CODEC.decode(payload, rules="lenient").messages, payloads)
    made = st.lists(stored([None, "anthropic", "openai-responses"], residual=st.none() | residuals), max_size=2)
    return [message for piece in draw(st.lists(read | made, max_size=3)) for message in piece]


@settings(max_examples=100)
@given(mixed_histories())
def test_each_message_that_reads_back_has_its_origins(history: list[ChatMessage]) -> None:
    written = write_payload(history)
    back = CODEC.decode(written.payload, rules="lenient").messages
    assert len(written.origins) == len(back)
    named = {index for sources in written.origins for index in sources}
    assert all(message.role == "custom" for index, message in enumerate(history) if index not in named)


@settings(max_examples=100)
@given(st.lists(payloads, max_size=3), levels)
def test_messages_that_are_as_they_were_read_have_their_origins(pieces: list[Json], rules: RulesLevel) -> None:
    history = [message for piece in pieces for message in CODEC.decode(piece, rules=rules).messages]
    written = write_payload(history)
    assert written.as_read
    back = CODEC.decode(written.payload, rules="lenient").messages
    assert [len(sources) > 0 for sources in written.origins] == [True] * len(back)


@settings(max_examples=150)
@given(stored([None, "anthropic", "openai-responses"], residual=st.none() | residuals) | mixed_histories().map(first))
def test_a_message_without_a_loss_reads_back_as_it_was(message: ChatMessage) -> None:
    encoded = CODEC.encode([message])
    if not encoded.losses:
        [back] = CODEC.decode(encoded.payload, rules="lenient").messages
        assert same_json(said(back), said(message))


def said(message: ChatMessage) -> Json:
    ours = {"format", "residual", "seq", "violations"}
    return message.model_dump(exclude=ours)
