"""Messages of any format written as this one, and their losses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from chatledger.formats.agent_service import CODEC
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import FilePart, ImagePart, Loss, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from tests.formats.agent_service import strategies
from tests.formats.agent_service.examples import a_message, encoded, said
from tests.formats.measured import encode


@pytest.mark.parametrize(
    ("role", "type_"), [("user", "human"), ("assistant", "ai"), ("tool", "tool"), ("custom", "custom")]
)
def test_roles_are_types_and_every_field_is_written(role: str, type_: str) -> None:
    message = LedgerMessage(role=role, content="hi", tool_call_id="call_1", run_id="run-7")
    assert encoded(message) == (a_message(type=type_, content="hi", tool_call_id="call_1", run_id="run-7"), [])


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_role_without_a_type_is_custom_and_named_in_its_data(role: str) -> None:
    message = LedgerMessage(role=role, content="Be brief.", custom_data={"a": 1})
    assert encoded(message) == (
        a_message(type="custom", content="Be brief.", custom_data={"a": 1, "role": role}),
        [("role", "role"), ("custom-data", "custom_data")],
    )


def test_a_role_in_the_data_gives_way_to_the_messages_own() -> None:
    message = LedgerMessage(role="system", content="", custom_data={"role": "x"})
    assert encoded(message)[1] == [("role", "role"), ("custom-data", "custom_data")]


def test_texts_are_joined_without_a_separator_and_other_parts_are_reported() -> None:
    content: list[Part] = [
        ThinkPart(text="hm"),
        TextPart(text="a", extras={"citations": []}),
        ImagePart(url="https://example.org/a.png"),
        TextPart(text="b"),
        OpaquePart(type="poll", value=1),
        FilePart(name="c.pdf"),
    ]
    assert encoded(LedgerMessage(role="assistant", content=content)) == (
        a_message(content="ab"),
        [
            ("reasoning", "content[0]"),
            ("extras", "content[1].extras"),
            ("media", "content[2]"),
            ("opaque", "content[4]"),
            ("media", "content[5]"),
            ("content-form", "content"),
        ],
    )


def test_fields_that_the_format_does_not_have_are_reported() -> None:
    message = LedgerMessage(
        role="tool",
        reasoning="hm",
        name="search",
        is_error=False,
        state="interrupted",
        custom_data={},
        format="openai-chat",
        residual={"keys": []},
    )
    assert encoded(message) == (
        a_message(type="tool"),
        [
            ("name", "name"),
            ("is-error", "is_error"),
            ("state", "state"),
            ("custom-data", "custom_data"),
            ("content-form", "content"),
            ("reasoning", "reasoning"),
            ("residual", "residual"),
        ],
    )


@pytest.mark.parametrize(
    ("arguments", "args", "losses"),
    [
        ({"b": 1, "a": 2}, {"b": 1, "a": 2}, []),
        ('{"b": 1, "a": 2}', {"b": 1, "a": 2}, ["arguments-form"]),
        (None, {}, ["arguments-form"]),
        ("", {}, ["arguments-form"]),
        (" \n", {}, ["arguments-form"]),
        ('{"a": ', {"_raw": '{"a": '}, ["arguments"]),
        ("[1]", {"_raw": "[1]"}, ["arguments"]),
        ("null", {"_raw": "null"}, ["arguments"]),
        ('{"a":' * 600 + "1" + "}" * 600, {"_raw": '{"a":' * 600 + "1" + "}" * 600}, ["arguments"]),
    ],
)
def test_arguments_are_an_object_or_raw_text(arguments: Any, args: dict[str, Any], losses: list[str]) -> None:
    call = ToolCall(id="call_1", name="f", arguments=arguments)
    written = {"name": "f", "args": args, "id": "call_1", "type": "tool_call"}
    assert encoded(LedgerMessage(role="assistant", content="", tool_calls=[call])) == (
        a_message(tool_calls=[written]),
        [(code, "tool_calls[0].arguments") for code in losses],
    )


def test_extras_of_a_call_are_reported() -> None:
    call = ToolCall(name="f", arguments={}, extras={"signature": "x"})
    assert encoded(LedgerMessage(role="assistant", content="", tool_calls=[call]))[1] == [
        ("extras", "tool_calls[0].extras")
    ]


def test_the_state_is_all_that_a_message_of_this_format_can_lose() -> None:
    [message] = CODEC.decode([{"type": "system", "content": None}], rules="lenient").messages
    assert encoded(message) == ({"type": "system", "content": None}, [])
    assert encoded(message.model_copy(update={"state": "partial"}))[1] == [("state", "state")]


def test_a_residual_of_another_release_changes_nothing() -> None:
    residuals: list[Any] = [7, [], {"calls": 1, "given": 2, "around": 3}, {"given": [[]]}]
    for residual in residuals:
        message = LedgerMessage(role="user", content="hi", format="agent-service", residual=residual)
        assert encoded(message) == (a_message(type="human", content="hi"), [])


@given(strategies.foreign_messages)
@settings(max_examples=100, deadline=None)
def test_any_message_is_written_as_a_valid_one_and_without_losses_reads_back(message: LedgerMessage) -> None:
    result = encode(CODEC, [message])
    CODEC.as_models(result.payload)
    [again] = CODEC.decode(result.payload).messages
    if not result.losses:
        assert said(again) == {**said(message), "format": "agent-service"}


def test_losses_name_the_seq() -> None:
    result = encode(
        CODEC, [LedgerMessage(role="user", content="a"), LedgerMessage(role="user", content="b", name="ada", seq=2)]
    )
    assert result.losses == [Loss("name", 2, "name")]
