"""Differences between messages and the messages read back, by code and path."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.codec import Written
from chatledger.formats.losses.codes import CODES
from chatledger.formats.losses.measure import groups_of, losses_between, unordered
from chatledger.models import ChatMessage, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall

Found = list[tuple[str, int | None, str]]
Lost = list[tuple[str, str]]
PNG = "data:image/png;base64,QQ=="


def said(role: str = "user", content: Any = None, **fields: Any) -> ChatMessage:
    return ChatMessage(role=role, content=content, **fields)


def between(
    messages: list[ChatMessage], back: list[ChatMessage], origins: list[tuple[int, ...]] | None = None
) -> Found:
    """The losses, which name their message by its place."""
    numbered = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages)]
    places = origins if origins is not None else [(index,) for index in range(len(back))]
    losses = losses_between(numbered, back, Written(None, places))
    assert {loss.code for loss in losses} <= CODES.keys()
    return [(loss.code, loss.seq, loss.path) for loss in losses]


def one(message: ChatMessage, back: ChatMessage) -> list[tuple[str, str]]:
    return [(code, path) for code, _, path in between([message], [back])]


def test_fields_that_the_ledger_assigns_are_not_compared() -> None:
    given = said(message_id="m", thread_id="t", branch=1, format="anthropic")
    assert one(given, said(residual={"keys": []}, format="openai-chat")) == []


@pytest.mark.parametrize(
    ("fields", "loss"),
    [
        ({"role": "tool"}, ("role", "role")),
        ({"name": "ada"}, ("name", "name")),
        ({"tool_call_id": ""}, ("call-id", "tool_call_id")),
        ({"is_error": False}, ("is-error", "is_error")),
        ({"run_id": "r"}, ("run-id", "run_id")),
        ({"state": "partial"}, ("state", "state")),
        ({"response_metadata": {}}, ("response-metadata", "response_metadata")),
        ({"custom_data": {"a": 1}}, ("custom-data", "custom_data")),
        ({"residual": {"a": 1}}, ("residual", "residual")),
        ({"reasoning": "Hm"}, ("reasoning", "reasoning")),
        ({"tool_calls": []}, ("calls", "tool_calls")),
        ({"content": ""}, ("content-form", "content")),
    ],
)
def test_each_field_that_does_not_come_back_is_a_loss(fields: dict[str, Any], loss: tuple[str, str]) -> None:
    assert one(said(**fields), said()) == [loss]


@pytest.mark.parametrize("back", [{"a": 1.0, "b": 2}, {"b": 2, "a": 1}, {"a": True, "b": 2}])
def test_json_is_compared_with_its_key_order_and_spelling(back: dict[str, Any]) -> None:
    assert one(said(custom_data={"a": 1, "b": 2}), said(custom_data=back)) == [("custom-data", "custom_data")]


@pytest.mark.parametrize(
    ("content", "back", "losses"),
    [
        ("a", [TextPart(text="a")], [("content-form", "content")]),
        ("a", "b", [("text", "content")]),
        ([TextPart(text="a"), TextPart(text="b")], "ab", [("content-form", "content")]),
        ([TextPart(text="a"), TextPart(text="b")], "a", [("text", "content[1]"), ("content-form", "content")]),
        ([TextPart(text="a"), OpaquePart(value=1)], [TextPart(text="a")], [("opaque", "content[1]")]),
        ([TextPart(text="a", extras={})], [TextPart(text="a")], [("extras", "content[0].extras")]),
        ([ImagePart(url="u", id="i")], [ImagePart(url="u")], [("media", "content[0].id")]),
        ([ImagePart(url="u")], [TextPart(text="u")], [("media", "content[0]")]),
        ([ImagePart(url=PNG)], [ImagePart(data="QQ==", mime_type="image/png")], [("media-form", "content[0]")]),
        ([TextPart(text="a"), ImagePart(url="u")], [ImagePart(url="u"), TextPart(text="a")], [("order", "content[1]")]),
        ([TextPart(text="a")], [TextPart(text="a"), TextPart(text="b")], [("made-up", "content")]),
        (
            [TextPart(text="a", extras={})],
            [TextPart(text="a"), TextPart(text="b")],
            [("extras", "content[0].extras"), ("made-up", "content")],
        ),
        ([ThinkPart(text="t", signature="s")], [ThinkPart(text="t")], [("signature", "content[0].signature")]),
    ],
)
def test_contents_differ_by_part(content: Any, back: Any, losses: Lost) -> None:
    assert one(said(content=content), said(content=back)) == losses


def test_reasoning_in_another_place_is_not_lost() -> None:
    parts: list[Part] = [ThinkPart(text="t"), TextPart(text="a")]
    moved = [("reasoning-form", "content[0]"), ("content-form", "content"), ("reasoning-form", "reasoning")]
    assert one(said(content=parts), said(content="a", reasoning="t")) == moved
    assert one(said(content=parts), said(content="a")) == [("reasoning", "content[0]"), ("content-form", "content")]
    signed = said(reasoning=[ThinkPart(text="t", signature="s")])
    assert one(signed, said(reasoning="t")) == [
        ("signature", "reasoning[0].signature"),
        ("reasoning-form", "reasoning"),
    ]
    assert one(signed, said()) == [("reasoning", "reasoning"), ("signature", "reasoning[0].signature")]
    assert one(said(content="a", reasoning="t"), said(content=parts)) == [
        ("content-form", "content"),
        ("reasoning-form", "reasoning"),
    ]


@pytest.mark.parametrize(
    ("call", "back", "losses"),
    [
        ({"id": "1"}, {}, [("call-id", "tool_calls[0].id")]),
        ({"arguments": '{"a": 1}'}, {"arguments": {"a": 1}}, [("arguments-form", "tool_calls[0].arguments")]),
        ({"arguments": None}, {"arguments": "{}"}, [("arguments-form", "tool_calls[0].arguments")]),
        ({"arguments": "{"}, {"arguments": {}}, [("arguments", "tool_calls[0].arguments")]),
        ({"extras": {}}, {}, [("extras", "tool_calls[0].extras")]),
    ],
)
def test_calls_differ_by_field(call: dict[str, Any], back: dict[str, Any], losses: Lost) -> None:
    calls, came_back = [ToolCall(name="f", **call)], [ToolCall(name="f", **back)]
    assert one(said(tool_calls=calls), said(tool_calls=came_back)) == losses


def test_a_call_that_is_left_out_is_named() -> None:
    calls = [ToolCall(name="f"), ToolCall(name="g"), ToolCall(name="h")]
    assert one(said(tool_calls=calls), said(tool_calls=[calls[0], calls[2]])) == [("calls", "tool_calls[1]")]
    assert one(said(), said(tool_calls=calls)) == [("made-up", "tool_calls")]


def test_the_pieces_of_a_message_equal_the_message() -> None:
    call = ToolCall(name="f")
    whole = said("assistant", "a", reasoning="t", tool_calls=[call], name="n")
    pieces = [said("assistant", "", reasoning="t"), said("assistant", "a"), said("assistant", "", tool_calls=[call])]
    named = [piece.model_copy(update={"name": "n"}) for piece in pieces]
    assert between([whole], named, [(0,), (0,), (0,)]) == [("split", 0, "")]


def test_joined_messages_equal_separate_ones() -> None:
    apart = [said("assistant", "a", run_id="r"), said("assistant", "b", run_id="s")]
    merged = said("assistant", [TextPart(text="a"), TextPart(text="b")], run_id="r")
    assert between(apart, [merged], [(0, 1)]) == [("merged", 1, ""), ("run-id", 1, "run_id")]


def test_messages_that_are_left_out_made_up_or_moved() -> None:
    messages = [said(content=text) for text in "abcd"]
    back = [messages[3], messages[0], said(), messages[1]]
    assert between(messages, back, [(3,), (0,), (), (1,)]) == [
        ("made-up", 1, ""),
        ("left-out", 2, ""),
        ("order", 3, ""),
    ]


def test_connected_messages_are_groups() -> None:
    assert list(groups_of(5, [(0,), (2, 1), (2,), (), (3,)])) == [([0], [0]), ([1, 2], [1, 2]), ([3], [4]), ([4], [])]


@pytest.mark.parametrize(
    ("origins", "moved"),
    [([(0,), (1,), (2,)], set()), ([(2,), (0,), (1,)], {2}), ([(0,), (2,), (1,), (2,)], {2}), ([], set())],
)
def test_the_fewest_messages_are_out_of_order(origins: list[tuple[int, ...]], moved: set[int]) -> None:
    assert unordered(origins) == moved
