"""Lenient rules keep a value that is no JSON as the nearest JSON and tell each one. Strict rules refuse all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats import get_codec, kosong, qwen_agent
from chatledger.formats.agent_service import ChatMessage as ServiceMessage
from chatledger.types import Loss

ODD: dict[Any, Any] = {"pair": (1, {2: "a"}), "set": {3}, "live": 1j, "raw": b"x", "kept": [None]}
NEAREST = {"pair": [1, {"2": "a"}], "set": [3], "live": "1j", "raw": "b'x'", "kept": [None]}
PATHS = [".pair", ".pair[1]", ".set", ".live", ".raw"]

# The payload that holds a value, the path to the value, and the value in the payload that comes back.
HOLDERS: dict[str, tuple[Callable[[Any], list[Any]], str, Callable[[Any], Any]]] = {
    "kosong/0.30": (lambda value: [{"role": "user", "content": "a", "x": value}], "$[0].x", lambda back: back[0]["x"]),
    "kosong/0.23": (lambda value: [{"role": "user", "content": "a", "x": value}], "$[0].x", lambda back: back[0]["x"]),
    "qwen-agent": (
        lambda value: [{"role": "user", "content": "a", "extra": value}],
        "[0].extra",
        lambda back: back[0]["extra"],
    ),
    "agent-service": (
        lambda value: [{"type": "human", "content": "a", "custom_data": value}],
        "$[0].custom_data",
        lambda back: back["messages"][0]["custom_data"],
    ),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_each_changed_value_is_reported(name: str) -> None:
    holding, path, held = HOLDERS[name]
    decoded = get_codec(name).decode(holding(ODD), rules="lenient")
    assert decoded.losses == [Loss("coerced", None, path + place) for place in PATHS]
    assert held(get_codec(name).encode(decoded.messages).payload) == NEAREST
    assert ODD["pair"] == (1, {2: "a"})


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("key", ODD)
def test_strict_lets_none_of_them_through(name: str, key: str) -> None:
    holding, path, _ = HOLDERS[name]
    if key != "kept":
        with pytest.raises(DecodeError) as caught:
            get_codec(name).decode(holding({key: ODD[key]}))
        assert caught.value.path.startswith(f"{path}.{key}")


# Each format with bytes in the place of an id or a name, and the path to them.
CALL = {"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}
BYTES: list[tuple[str, list[Any], str]] = [
    ("openai-chat", [{"role": "user", "content": "a", "name": b"x"}], "messages[0].name"),
    ("openai-chat", [{"role": "tool", "content": "a", "tool_call_id": b"x"}], "messages[0].tool_call_id"),
    ("openai-responses", [{"type": "function_call_output", "call_id": b"x", "output": ""}], "input[0].call_id"),
    (
        "anthropic",
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": b"x"}]}],
        "messages[0].content[0].tool_use_id",
    ),
    ("kosong/0.30", [{"role": b"user", "content": "a"}], "$[0].role"),
    ("kosong/0.30", [{"role": "user", "content": "a", "name": b"x"}], "$[0].name"),
    ("kosong/0.30", [{"role": "tool", "content": "a", "tool_call_id": bytearray(b"x")}], "$[0].tool_call_id"),
    (
        "kosong/0.30",
        [{"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": b"x"}]}],
        "$[0].tool_calls[0].id",
    ),
    (
        "kosong/0.30",
        [{"role": "assistant", "content": "", "tool_calls": [{**CALL, "function": {"name": b"x"}}]}],
        "$[0].tool_calls[0].function.name",
    ),
    ("qwen-agent", [{"role": b"user", "content": "a"}], "[0].role"),
    ("qwen-agent", [{"role": "function", "content": "a", "name": b"x"}], "[0].name"),
    ("qwen-agent", [{"role": "function", "content": "a", "extra": {"function_id": b"x"}}], "[0].extra.function_id"),
    (
        "qwen-agent",
        [{"role": "assistant", "content": "", "function_call": {"name": b"x", "arguments": ""}}],
        "[0].function_call.name",
    ),
    ("agent-service", [{"type": "tool", "content": "a", "tool_call_id": b"x"}], "$[0].tool_call_id"),
    ("agent-service", [{"type": "ai", "content": "a", "run_id": b"x"}], "$[0].run_id"),
    (
        "agent-service",
        [{"type": "ai", "content": "a", "tool_calls": [{"name": "f", "args": {}, "id": b"x"}]}],
        "$[0].tool_calls[0].id",
    ),
]


@pytest.mark.parametrize("rules", ["strict", "lenient"])
@pytest.mark.parametrize(("name", "payload", "path"), BYTES)
def test_bytes_are_refused_as_an_id_or_a_name_at_every_level(
    name: str, payload: list[Any], path: str, rules: Any
) -> None:
    with pytest.raises(DecodeError) as caught:
        get_codec(name).decode(payload, rules=rules)
    assert caught.value.path == path


class Weighed(qwen_agent.ContentItem):
    weight: int = 1


class Timed(qwen_agent.FunctionCall):
    seconds: int = 1


def test_fields_of_a_subclass_inside_a_message_are_not_dropped() -> None:
    codec = get_codec("qwen-agent")
    said = qwen_agent.Message("user", [Weighed(text="a")])
    asked = qwen_agent.Message("assistant", "", function_call=Timed(name="f", arguments="{}"))
    for message, path in ((said, "[0].content[0].weight"), (asked, "[0].function_call.seconds")):
        with pytest.raises(DecodeError) as caught:
            codec.decode([message])
        assert caught.value.path == path
    kept = codec.decode([said, asked], rules="lenient")
    assert codec.encode(kept.messages).payload == [
        {"role": "user", "content": [{"text": "a", "weight": 1}]},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}", "seconds": 1}},
    ]


def test_live_objects_in_objects_are_reported_like_those_in_dicts() -> None:
    service = ServiceMessage(type="ai", content="a", custom_data={"pair": (1, 2)})
    assert get_codec("agent-service").decode([service], rules="lenient").losses == [
        Loss("coerced", None, "$[0].custom_data.pair")
    ]
    part = kosong.UnknownPart(type="later", value={"type": "later", "pair": (1, 2)})
    message = kosong.Message(role="user", content=[part])
    assert get_codec("kosong").decode([message], rules="lenient").losses == [
        Loss("coerced", None, "$[0].content[0].pair")
    ]
