"""Decoding and encoding gives equal objects, equal dumps in key order, byte-equal JSON, with and without None."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.qwen_agent import CODEC, Message
from chatledger.models import ChatMessage
from chatledger.models.json import same_json
from tests.formats.measured import encode
from tests.formats.qwen_agent.strategies import texts, values


def read_back(payload: list[Any]) -> list[Any]:
    stored = CODEC.decode(payload).messages
    rebuilt = [ChatMessage.model_validate(message.model_dump()) for message in stored]
    assert rebuilt == stored or repr(rebuilt) == repr(stored)  # NaN is not equal to itself
    encoded = encode(CODEC, rebuilt)
    assert encoded.losses == []
    rows: list[Any] = encoded.payload
    return rows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(texts | st.sampled_from(["content", "name", "extra"]), values), max_size=3))
def test_lenient_gives_back_whatever_has_a_role(payload: list[dict[str, Any]]) -> None:
    dicts = [{**message, "role": f"role {index}"} for index, message in enumerate(payload)]
    decoded = CODEC.decode(dicts, rules="lenient")
    assert decoded.losses == []
    assert same_json(encode(CODEC, decoded.messages).payload, dicts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["text", "image", "audio", "type"]), values) | values, max_size=3))
def test_lenient_gives_back_any_content_items(items: list[Any]) -> None:
    dicts = [{"role": "user", "content": items, "function_call": {"name": "f", "arguments": items, "id": 1}}]
    assert same_json(encode(CODEC, CODEC.decode(dicts, rules="lenient").messages).payload, dicts)


def test_real_objects_come_back_as_equal_ones(upstream: Any) -> None:
    call = upstream.FunctionCall("f", "{}")
    items = [upstream.ContentItem(text="a"), upstream.ContentItem(audio={"data": "x", "format": "wav"})]
    payload = [
        upstream.Message("user", items),
        upstream.Message("assistant", "", "because", "Ada", call, {"function_id": "1"}),
    ]
    rows = read_back(payload)
    assert [upstream.Message(**row) for row in rows] == payload
    assert repr(CODEC.as_models(rows)) == repr(payload)


def test_a_subclass_keeps_its_own_fields() -> None:
    class Tagged(Message):
        tag: str = "x"

    assert read_back([Tagged(role="user", content="a")]) == [{"role": "user", "content": "a", "tag": "x"}]


def test_a_dump_of_qwen_agent_needs_no_residual() -> None:
    result = {"role": "function", "content": "25", "name": "f", "extra": {"function_id": "call_0"}}
    call = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}
    items = [{"text": "a"}, {"image": "b"}, {"audio": {"data": "x", "format": "wav"}}, {"video": ["a", "b"]}]
    payload = [{"role": "user", "content": items}, {**call, "extra": {"function_id": "call_0"}}, result]
    assert [message.residual for message in CODEC.decode(payload).messages] == [None, None, None]


def test_one_odd_item_does_not_keep_the_others_twice() -> None:
    payload = [{"role": "user", "content": [{"text": "long"}, {"text": "a", "image": None}]}]
    [message] = CODEC.decode(payload).messages
    assert message.residual == {"inner": {"content.1": {"keys": ["text", "image"], "extra": {"image": None}}}}


def test_the_kind_that_came_in_is_known() -> None:
    objects = CODEC.decode([Message("user", "a")]).messages
    dicts = CODEC.decode([{"role": "user", "content": "a"}]).messages
    assert [CODEC.given_as(it) for it in (objects, dicts, [*dicts, *objects], [])] == [
        "models",
        "dicts",
        "models",
        "dicts",
    ]
    assert dicts[0].residual is None
