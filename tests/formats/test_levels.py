"""All levels read a payload alike that strict accepts: the level matters only if strict refuses the payload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError, FormatError
from chatledger.formats import format_names, get_codec
from tests.formats.measured import encode
from tests.formats.round_trips import ROUND_TRIPS
from tests.hostile.payloads import anything, mutated, places_of

slowly = settings(suppress_health_check=list(HealthCheck))
payload_of = {one.format: st.lists(one.messages, min_size=1, max_size=3) for one in ROUND_TRIPS}


@st.composite
def emptied(draw: st.DrawFn, name: str) -> Any:
    """A payload of a format in which some texts are empty: names, ids, roles."""
    payload = draw(mutated(name))
    for container, key in list(places_of(payload)):
        if isinstance(container[key], str) and draw(st.integers(0, 3)) == 0:
            container[key] = ""
    return payload


def assert_levels_agree(name: str, payload: Any) -> None:
    codec = get_codec(name)
    try:
        strict = codec.decode(payload)
    except FormatError:
        return
    assert strict.losses == []
    for level in ("ordered", "lenient"):
        decoded = codec.decode(payload, rules=level)
        assert decoded.losses == []
        assert list(map(repr, decoded.messages)) == list(map(repr, strict.messages))  # in which NaN equals NaN


CALL = {"id": "c", "type": "function", "function": {"name": "", "arguments": "{}"}}
NAMELESS: dict[str, tuple[Any, str]] = {
    "openai-chat": ([{"role": "assistant", "content": None, "tool_calls": [CALL]}], "messages[0].tool_calls[0]"),
    "openai-responses": ([{"type": "function_call", "call_id": "c", "name": "", "arguments": ""}], "input[0].name"),
    "anthropic": (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "", "input": {}}]}],
        "messages[0].content[0].name",
    ),
    "kosong/0.23": ([{"role": "assistant", "content": "", "tool_calls": [CALL]}], "$[0].tool_calls[0].function.name"),
    "kosong/0.30": ([{"role": "assistant", "content": "", "tool_calls": [CALL]}], "$[0].tool_calls[0].function.name"),
    "qwen-agent": (
        [{"role": "assistant", "content": "", "function_call": {"name": "", "arguments": ""}}],
        "[0].function_call.name",
    ),
    "pydantic-ai": (
        [{"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "", "args": "{}"}]}],
        "$[0].parts[0].tool_name",
    ),
    "agent-framework": (
        [{"type": "message", "role": "assistant", "contents": [{"type": "function_call", "name": ""}]}],
        "$[0].contents[0].name",
    ),
    "agent-service": (
        [{"type": "ai", "content": "", "tool_calls": [{"name": "", "args": {}, "id": "c"}]}],
        "$[0].tool_calls[0].name",
    ),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_strict_refuses_a_call_without_a_name_and_lenient_keeps_it_beside_the_message(name: str) -> None:
    payload, path = NAMELESS[name]
    codec = get_codec(name)
    with pytest.raises(DecodeError, match="empty: a call needs a name") as caught:
        codec.decode(payload)
    assert caught.value.path == path
    [message] = codec.decode(payload, rules="lenient").messages
    assert message.tool_calls in (None, [])
    assert encode(codec, [message]).losses == []


def test_strict_refuses_a_run_without_an_id() -> None:
    payload = [{"type": "ai", "content": "", "run_id": ""}]
    with pytest.raises(DecodeError, match="must not be empty") as caught:
        get_codec("agent-service").decode(payload)
    assert caught.value.path == "$[0].run_id"
    assert get_codec("agent-service").decode(payload, rules="lenient").messages[0].run_id is None


def test_a_legacy_call_without_a_name_is_refused_with_its_path() -> None:
    with pytest.raises(DecodeError) as caught:
        get_codec("openai-chat").decode([{"role": "assistant", "content": None, "function_call": {"name": ""}}])
    assert caught.value.path == "messages[0].function_call.name"


@pytest.mark.parametrize("name", format_names())
@slowly
@given(data=st.data())
def test_lenient_reads_what_strict_accepts_as_strict_does(name: str, data: st.DataObject) -> None:
    assert_levels_agree(name, data.draw(payload_of[name] | mutated(name) | emptied(name)))


@slowly
@given(payload=anything | st.lists(anything, max_size=3))
def test_lenient_reads_anything_that_strict_accepts_as_strict_does(payload: Any) -> None:
    for name in format_names():
        assert_levels_agree(name, payload)
