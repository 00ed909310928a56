"""Properties of openai-chat beyond the laws of `test_laws.py`."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat import CODEC
from chatledger.models import LENIENT, ChatMessage
from chatledger.models.json import same_json
from tests.formats.measured import encode
from tests.formats.openai_chat.strategies import Json, messages, misshapen_messages, residuals
from tests.formats.stored import stored


@settings(max_examples=100)
@given(messages)
def test_the_residual_never_repeats_what_the_typed_fields_hold(source: dict[str, Json]) -> None:
    message = CODEC.decode([source]).messages[0]
    repeated = {key for key, value in nested(message.residual, "extra").items() if value is not None} & HELD
    assert repeated <= ({"function_call"} if isinstance(source.get("tool_calls"), list) else set())
    of_calls = [nested(residual, "inner", "extra").keys() for residual in nested(message.residual, "calls").values()]
    assert not {"name", "input"} & {key for keys in of_calls for key in keys}


HELD = {"content", "name", "tool_calls", "tool_call_id", "function_call", "reasoning_content"}


def nested(residual: Json, *keys: str) -> dict[str, Json]:
    for key in keys:
        residual = (residual or {}).get(key)
    return residual or {}


@settings(max_examples=100)
@given(st.lists(messages | misshapen_messages, max_size=2))
@example([{"role": "system", "\ud800": None}])  # Pydantic writes no JSON text of it, but it is a message
def test_a_built_message_equals_a_validated_one(payload: list[Json]) -> None:
    try:
        decoded = CODEC.decode(payload, rules="lenient").messages
    except DecodeError:
        return
    for message in decoded:
        rebuilt = ChatMessage.model_validate(message.model_dump(), context=LENIENT)
        assert rebuilt == message
        assert list(message.__dict__) == list(rebuilt.__dict__)
        assert same_json(message.model_dump(), rebuilt.model_dump())


def test_a_text_of_a_class_of_its_own_becomes_plain_text() -> None:
    class Said(str):
        pass

    call = {"id": Said("c"), "type": Said("function"), "function": {"name": Said("f"), "arguments": Said("{}")}}
    source = {"role": Said("assistant"), "content": Said("x"), "tool_calls": [call]}
    (message,) = CODEC.decode([source]).messages
    assert [type(text) for text in (message.role, message.content, message.name)] == [str, str, type(None)]
    [read] = message.tool_calls or []
    assert [type(text) for text in (read.name, read.arguments)] == [str, str]


@settings(max_examples=60)
@given(st.lists(messages, min_size=1, max_size=4), st.integers(0, 4))
def test_any_end_of_a_payload_comes_back_alone(payload: list[Json], start: int) -> None:
    assert same_json(encode(CODEC, CODEC.decode(payload).messages[start:]).payload, payload[start:])


@settings(max_examples=100)
@given(st.lists(stored([None, "anthropic", "openai-responses"]), max_size=4))
def test_messages_of_any_format_are_accepted_by_the_api(history: list[ChatMessage]) -> None:
    payload = encode(CODEC, history).payload
    assert len(payload) == sum(message.role != "custom" for message in history)
    assert [problem for wire in payload for problem in problems(wire)] == []
    assert same_json(encode(CODEC, CODEC.decode(payload, rules="lenient").messages).payload, payload)


@settings(max_examples=100)
@given(st.lists(stored(["openai-chat"], residual=residuals), max_size=2))
def test_a_residual_of_another_shape_never_raises(history: list[ChatMessage]) -> None:
    encoded = encode(CODEC, history)
    assert len(encoded.payload) == len(history) - sum(loss.code == "left-out" for loss in encoded.losses)


@settings(max_examples=60)
@given(st.lists(stored([None, "anthropic"]), max_size=3))
def test_a_message_without_a_loss_says_all_that_it_holds(history: list[ChatMessage]) -> None:
    encoded = encode(CODEC, history)
    if not encoded.losses and not any(message.role == "tool" for message in history):
        held = [spoken(message) for message in history]
        assert [spoken(message) for message in CODEC.decode(encoded.payload).messages] == held


def spoken(message: ChatMessage) -> dict[str, Json]:
    """What a message says, without where it stands and how it was written."""
    return message.model_dump(include={"role", "name", "reasoning", "tool_call_id", "is_error", "custom_data"}) | {
        "text": message.text,
        "calls": message.tool_calls,
    }


def problems(wire: dict[str, Json]) -> list[str]:
    """The values of a message that the API would refuse."""
    found = []
    if wire["role"] not in ("system", "developer", "user", "assistant", "tool"):
        found.append(f"role {wire['role']!r}")
    if wire["content"] is None and not wire.get("tool_calls"):
        found.append("no content")
    if isinstance(wire["content"], list):
        allowed = {"text", "image_url", "input_audio", "file"} if wire["role"] == "user" else {"text"}
        found += [f"part {part!r}" for part in wire["content"] if part["type"] not in allowed]
        found += ["no parts"] if not wire["content"] else []
    if ("tool_call_id" in wire) != (wire["role"] == "tool"):
        found.append("tool_call_id")
    if "tool_calls" in wire and (wire["role"] != "assistant" or not wire["tool_calls"]):
        found.append("tool_calls")
    for call in wire.get("tool_calls", ()):
        if not (list(call) == ["id", "type", "function"] and isinstance(call["function"]["arguments"], str)):
            found.append(f"call {call!r}")
    return found
