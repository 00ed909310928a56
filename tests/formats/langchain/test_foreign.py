"""Messages of other formats as LangChain's, and LangChain's as theirs."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, OpaquePart, Payload, TextPart, ToolCall
from chatledger.formats import get_codec
from chatledger.formats.langchain import CODEC
from tests.formats.langchain.samples import SAMPLES
from tests.formats.measured import encode

ASKED = SAMPLES["a question with a call"]


def written(*messages: ChatMessage) -> list[dict[str, Any]]:
    return [entry["data"] for entry in encode(CODEC, messages).payload]


def test_every_field_of_a_class_is_written() -> None:
    encoded = encode(CODEC, [ChatMessage(role="user", content="Oslo?", message_id="m1", name="ada")])
    assert encoded.losses == []
    assert encoded.payload == [
        {
            "type": "human",
            "data": {
                "content": "Oslo?",
                "additional_kwargs": {},
                "response_metadata": {},
                "type": "human",
                "name": "ada",
                "id": "m1",
            },
        }
    ]


def test_roles_without_a_class_are_chat_messages() -> None:
    developer, custom = written(
        ChatMessage(role="developer", content="Be brief."), ChatMessage(role="custom", content="Saved.")
    )
    assert (developer["type"], developer["additional_kwargs"]) == ("system", {"__openai_role__": "developer"})
    assert (custom["type"], custom["role"]) == ("chat", "custom")


def test_calls_without_ids_get_the_ids_that_their_results_name() -> None:
    calls = [ToolCall(name="f", arguments='{"a": 1}'), ToolCall(name="g", arguments="{")]
    asked, first, second = written(
        ChatMessage(role="assistant", tool_calls=calls),
        ChatMessage(role="tool", name="f", content="1"),
        ChatMessage(role="tool", name="g", content="2", is_error=True),
    )
    assert asked["tool_calls"] == [{"name": "f", "args": {"a": 1}, "id": "call_1_0", "type": "tool_call"}]
    assert [(call["id"], call["args"]) for call in asked["invalid_tool_calls"]] == [("call_1_1", "{")]
    assert [(one["tool_call_id"], one["status"]) for one in (first, second)] == [
        ("call_1_0", "success"),
        ("call_1_1", "error"),
    ]


def test_parts_of_another_format_are_left_out_and_reported() -> None:
    parts = [TextPart(text="a"), OpaquePart(type="tool_use", value={"type": "tool_use"})]
    encoded = encode(CODEC, [ChatMessage(role="assistant", content=list(parts), format="anthropic")])
    assert encoded.payload[0]["data"]["content"] == [{"type": "text", "text": "a"}]
    assert [(loss.code, loss.path) for loss in encoded.losses] == [("opaque", "content[1]")]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "openai-responses", "kosong"])
def test_a_conversation_reads_as_other_formats(target: str) -> None:
    payload = str(encode(get_codec(target), CODEC.decode(ASKED).messages).payload)
    for word in ("How cold is Oslo?", "call_1", "weather", "4 °C."):
        assert word in payload


@pytest.mark.parametrize("rules", ["strict", "lenient"])
async def test_a_stored_conversation_is_recognised_and_reads_in_both_ways(ledger: Ledger, rules: Any) -> None:
    await ledger.messages.append("t", Payload(ASKED), create=True, rules=rules)
    history = (await ledger.messages.history("t")).encode("langchain")
    assert history.payload == ASKED
    assert history.losses == ()
    chat = await ledger.messages.prompt("t", "openai-chat")
    assert [message["role"] for message in chat.payload] == ["system", "user", "assistant", "tool", "assistant"]
