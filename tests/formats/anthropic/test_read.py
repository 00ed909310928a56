"""How requests to the API are read, and which payloads are refused."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats.anthropic import CODEC
from chatledger.models import ChatMessage, FilePart, ImagePart, Loss, OpaquePart, TextPart, ThinkPart, ToolCall
from chatledger.rules import Tip, judge
from tests.formats.openai_chat.strategies import Json


def decoded(payload: Json, **options: Any) -> list[ChatMessage]:
    return CODEC.decode(payload, **options).messages


def user(*blocks: Json) -> dict[str, Json]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": list(blocks)}


def use(id_: str, **more: Json) -> dict[str, Json]:
    return {"type": "tool_use", "id": id_, "name": "weather", "input": {"city": "Lima"}, **more}


def result(id_: str, **more: Json) -> dict[str, Json]:
    return {"type": "tool_result", "tool_use_id": id_, **more}


def text(text: str, **more: Json) -> dict[str, Json]:
    return {"type": "text", "text": text, **more}


def test_the_system_prompt_is_the_first_message() -> None:
    asked = {"role": "user", "content": "Hi"}
    assert decoded({"system": "Be brief.", "messages": [asked]}) == [
        ChatMessage(role="system", content="Be brief.", format="anthropic"),
        ChatMessage(role="user", content="Hi", format="anthropic"),
    ]
    assert decoded({"system": [text("Be brief.")], "messages": []})[0].content == [TextPart(text="Be brief.")]
    assert [message.role for message in decoded({"messages": [asked]})] == ["user"]


def test_thinking_keeps_its_signature_and_its_place() -> None:
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "eA=="}
    [message] = decoded([assistant(thinking, redacted, text("Yes"))])
    assert message.content == [
        ThinkPart(text="Hm", signature="c2ln"),
        OpaquePart(type="redacted_thinking", value=redacted),
        TextPart(text="Yes"),
    ]
    assert message.reasoning_text == "Hm"
    assert message.residual is None


def test_tool_uses_are_the_calls_of_the_message() -> None:
    [message] = decoded([assistant(text("Let me see."), use("a"), use("b", cache_control={"type": "ephemeral"}))])
    call = ToolCall(id="a", name="weather", arguments={"city": "Lima"})
    assert message.tool_calls == [call, call.model_copy(update={"id": "b"})]
    assert message.content == "Let me see."
    assert decoded([assistant(use("a"))])[0].content is None


def test_each_result_is_a_message_and_the_rest_is_one_after_them() -> None:
    asked = user(text("Look:"), result("a", content="sunny"), text("and"), result("b", is_error=True), text("so?"))
    first, second, rest = decoded([asked])
    assert (first.role, first.tool_call_id, first.content, first.is_error) == ("tool", "a", "sunny", None)
    assert (second.role, second.tool_call_id, second.content, second.is_error) == ("tool", "b", None, True)
    assert (rest.role, rest.text) == ("user", "Look:andso?")
    assert [message.residual for message in (first, second, rest)] == [
        None,
        {"continues": True},
        {"continues": True, "rest_at": [0, 2, 4]},
    ]


def test_messages_in_a_row_stay_apart_and_a_group_can_be_cut() -> None:
    cached = text("so?", cache_control={"type": "ephemeral"})
    apart = [user(result("a")), user(result("b"), cached)]
    first, second, rest = decoded(apart)
    assert CODEC.encode([first, second, rest]).payload["messages"] == apart
    assert CODEC.encode([first, rest]).payload["messages"] == [user(result("a"), cached)]
    assert CODEC.encode([rest]).payload["messages"] == [user(cached)]


def test_strict_rules_accept_a_user_text_beside_results() -> None:
    asked = [assistant(use("a"), use("b")), user(text("Look:"), result("b"), result("a"))]
    judgement = judge(Tip(), decoded(asked), branch=0, level="strict")
    assert judgement.tip.open_calls == ()


def test_results_hold_texts_images_and_unknown_blocks() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}
    reference = {"type": "tool_reference", "tool_name": "f"}
    [message] = decoded([user(result("a", content=[text("Here"), image, reference]))])
    assert message.content == [
        TextPart(text="Here"),
        ImagePart(data="QQ==", mime_type="image/png"),
        OpaquePart(type="tool_reference", value=reference),
    ]


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
            {"data": "QQ==", "mime_type": "application/pdf"},
        ),
        ({"type": "url", "url": "https://h/x.pdf"}, {"url": "https://h/x.pdf"}),
        ({"type": "file", "file_id": "file_1"}, {"id": "file_1"}),
    ],
)
def test_documents_are_files(source: Json, fields: dict[str, str]) -> None:
    block = {"type": "document", "source": source, "title": "Report", "citations": {"enabled": True}}
    [message] = decoded([user(block)])
    assert message.content == [FilePart(**fields, name="Report")]
    assert message.residual == {
        "parts": {"0": {"keys": ["type", "source", "title", "citations"], "extra": {"citations": {"enabled": True}}}}
    }


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}},
        {"type": "document", "source": {"type": "content", "content": [text("Hi")]}},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {}},
        {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "n", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": []},
        {"type": "container_upload", "file_id": "f"},
        {"type": "compaction", "content": "so far"},
        {"type": "what_comes_next"},
    ],
)
def test_other_blocks_are_kept_whole_in_their_place(block: Json) -> None:
    [message] = decoded([assistant(text("a"), block, text("b"))])
    opaque = OpaquePart(type=block["type"], value=block)
    assert message.content == [TextPart(text="a"), opaque, TextPart(text="b")]


def test_the_other_keys_of_a_reply_are_its_metadata() -> None:
    said = {"id": "msg_1", "type": "message", "model": "m", "stop_reason": "end_turn", "usage": {"output_tokens": 3}}
    reply = {**said, "role": "assistant", "content": [text("Hi")]}
    [message] = decoded([reply])
    assert message.response_metadata == said
    assert CODEC.encode([message]).payload == {"messages": [reply]}
    without = message.model_copy(update={"response_metadata": None})
    assert CODEC.encode([without]).payload == {"messages": [assistant(text("Hi"))]}


def test_a_system_message_in_the_list_stays_there() -> None:
    payload = {"system": "a", "messages": [{"role": "system", "content": "b"}, {"role": "user", "content": "c"}]}
    assert [message.role for message in decoded(payload)] == ["system", "system", "user"]
    assert CODEC.encode(decoded(payload)).payload == payload


def test_other_keys_of_a_request_stay_with_its_first_message() -> None:
    payload: Json = {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 9}
    reply = {"role": "assistant", "content": "b"}
    later = decoded([reply])
    assert CODEC.encode([*decoded(payload), *later]).payload == {**payload, "messages": [*payload["messages"], reply]}
    assert CODEC.encode(later).payload == {"messages": [reply]}


def test_keys_of_a_request_without_messages_cannot_be_kept() -> None:
    with pytest.raises(DecodeError, match="model: the request has no message"):
        decoded({"model": "m", "messages": []})
    assert CODEC.decode({"messages": [], "model": "m"}, rules="lenient").losses == [Loss("payload", None, "model")]


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (None, "messages"),
        ("Hi", "messages"),
        ({}, "messages"),
        ({"role": "user", "content": "Hi"}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [], "system": 1}, "system"),
        ([1], "messages[0]"),
        ([{"content": "Hi"}], "messages[0].role"),
        ([{"role": "tool", "content": "Hi"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": 1}], "messages[0].content"),
        ([user("Hi")], "messages[0].content[0]"),
        ([user({"text": "Hi"})], "messages[0].content[0].type"),
        ([user(text("a"), {"type": "text"})], "messages[0].content[1].text"),
        ([user({"type": "image", "source": {"type": "url"}})], "messages[0].content[0].source.url"),
        ([user(use("a"))], "messages[0].content[0]"),
        ([assistant(result("a"))], "messages[0].content[0]"),
        ([assistant({"type": "tool_use", "id": "a", "name": "f"})], "messages[0].content[0].input"),
        ([assistant({"type": "tool_use", "name": "f", "input": {}})], "messages[0].content[0].id"),
        ([user({"type": "tool_result"})], "messages[0].content[0].tool_use_id"),
        ([user(result("a", is_error="no"))], "messages[0].content[0].is_error"),
        ([user(result("a", content=[{"type": "text"}]))], "messages[0].content[0].content[0].text"),
        ([{"role": "user", "content": "Hi", "more": {1: 2}}], "messages[0].more"),
    ],
)
def test_an_invalid_value_is_refused_with_its_path(payload: Json, path: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decoded(payload)
    assert refused.value.path == path


@pytest.mark.parametrize(
    "message",
    [
        {"role": "narrator", "content": "Meanwhile"},
        {"role": "tool", "content": "sunny", "tool_use_id": "a"},
        {"role": "custom", "content": "a spinner"},
        {"role": "user", "content": None},
        {"role": "user"},
        user({"text": "Hi"}),
        user({"type": "text"}, use("a")),
        user(result("a"), {"type": "tool_result"}),
        assistant(result("a"), use("b", name=""), use("c", input=[])),
        {"type": "message", "role": "assistant", "content": None},
    ],
)
def test_lenient_keeps_malformed_values(message: Json) -> None:
    assert CODEC.encode(decoded([message], rules="lenient")).payload == {"messages": [message]}
