"""X stored and read as X is X, at every level, for any valid message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats import kosong
from chatledger.formats.kosong import CODEC, v0_23
from chatledger.formats.kosong.codec import KosongCodec
from chatledger.models import ChatMessage
from tests.formats.kosong.strategies import altered_rows, rows
from tests.formats.measured import encode

OLDER = v0_23.CODEC


def stored(codec: KosongCodec, payload: list[Any]) -> list[ChatMessage]:
    """The messages of a payload after they rested as plain data."""
    return [ChatMessage.model_validate(message.model_dump()) for message in codec.decode(payload).messages]


@given(st.lists(rows | altered_rows(), max_size=3))
@settings(max_examples=60, deadline=None)
def test_the_objects_of_dicts_are_what_the_class_reads(payload: list[Any]) -> None:
    def fields_required(row: dict[str, Any]) -> dict[str, Any]:
        calls = [{**call, "function": {"arguments": None, **call["function"]}} for call in row.get("tool_calls") or ()]
        return {**row, "tool_calls": calls} if row.get("tool_calls") else row

    back = CODEC.as_models(encode(CODEC, stored(CODEC, payload)).payload)
    assert back == [kosong.Message.model_validate(fields_required(row)) for row in payload]


def test_an_ordinary_object_has_no_residual() -> None:
    call = kosong.ToolCall(id="1", function=kosong.ToolCall.FunctionBody(name="f", arguments="{}"))
    message = kosong.Message(role="assistant", content=[kosong.ThinkPart(think="hm")], tool_calls=[call])
    assert CODEC.decode([message]).messages[0].residual is None


def test_an_object_that_was_read_costs_a_word() -> None:
    message = v0_23.Message.model_validate({"role": "user", "content": [{"type": "text", "text": "x"}]})
    assert OLDER.decode([message]).messages[0].residual == {"given": "short"}


def test_an_unknown_key_in_a_part_does_not_copy_the_part() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1000}, "later": 1}
    [message] = CODEC.decode([{"role": "user", "content": [image]}]).messages
    assert len(json.dumps(message.residual)) < 250


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
@pytest.mark.parametrize("codec", [CODEC, OLDER])
def test_four_kinds_of_nothing_stay_four(codec: KosongCodec, content: Any) -> None:
    row = {"role": "assistant", "content": content}
    assert encode(codec, stored(codec, [row])).payload == [row]


@pytest.mark.parametrize("partial", [None, True, False])
def test_partial_is_a_flag_of_the_source_and_not_a_state(partial: bool | None) -> None:
    [message] = stored(CODEC, [kosong.Message(role="assistant", content="x", partial=partial)])
    assert message.state == "complete"
    assert CODEC.as_models(encode(CODEC, [message]).payload)[0].partial is partial


def test_the_kind_that_came_in_is_known() -> None:
    message = kosong.Message(role="user", content="x")
    assert CODEC.given_as(stored(CODEC, [message])) == "models"
    assert CODEC.given_as(stored(CODEC, [message.model_dump()])) == "dicts"
    assert CODEC.given_as(stored(CODEC, [message, message.model_dump()])) == "dicts"


@pytest.mark.parametrize("codec", [CODEC, OLDER])
def test_a_dump_that_its_caller_changed_is_read_as_it_is(codec: KosongCodec) -> None:
    """An unchanged one is read as its object, which knows more."""
    message = codec.revision.message(role="user", content="")
    [dump] = codec.encode(stored(codec, [message])).payload
    assert codec.decode([dump], rules="lenient").messages[0].content == ""
    dump["content"] = "changed"
    assert codec.decode([dump], rules="lenient").messages[0].content == "changed"
