"""Messages of other formats as requests and responses, and the other way round."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chatledger import Ledger, Oldest, Payload, Turns
from chatledger.formats import get_codec
from chatledger.formats.pydantic_ai import CODEC
from chatledger.formats.pydantic_ai.parts import digest
from chatledger.models import ChatMessage, FilePart, ImagePart, Loss, TextPart, ThinkPart, ToolCall
from tests.formats.measured import encode
from tests.formats.pydantic_ai.samples import history

TIME = datetime(2026, 11, 1, 12, tzinfo=UTC)
STAMP = {"timestamp": "2026-11-01T12:00:00Z"}


def write(*messages: ChatMessage) -> Any:
    return encode(CODEC, messages).payload


def test_a_conversation_is_requests_and_responses() -> None:
    said = [
        ChatMessage(role="system", content="Be short."),
        ChatMessage(role="user", content="Oslo?", created_at=TIME),
        ChatMessage(role="assistant", tool_calls=[ToolCall(name="weather", arguments="{}")], created_at=TIME, seq=3),
        ChatMessage(role="tool", content="4 °C"),
        ChatMessage(role="assistant", content="Cold."),
    ]
    asked, called, answered, answer = write(*said)
    assert [part["part_kind"] for part in asked["parts"]] == ["system-prompt", "user-prompt"]
    assert asked["parts"][1] == {"content": "Oslo?", **STAMP, "part_kind": "user-prompt"}
    assert called["timestamp"] == STAMP["timestamp"]
    assert "timestamp" not in answer  # the framework refuses null, and takes the present time for an absent one
    [call], [result] = called["parts"], answered["parts"]
    assert (call["tool_name"], call["args"], call["tool_call_id"]) == ("weather", "{}", "call_3_0")
    assert (result["tool_name"], result["tool_call_id"], result["outcome"]) == ("weather", "call_3_0", "success")


def test_media_are_binary_or_addresses() -> None:
    media = [
        ImagePart(url="data:image/png;base64,+/8="),
        FilePart(data="QQ==", mime_type="application/pdf", name="a.pdf"),
        ImagePart(url="https://h/a.png"),
        ImagePart(id="file-1"),
    ]
    encoded = encode(CODEC, [ChatMessage(role="user", content=media, seq=1)])
    image, pdf, address = encoded.payload[0]["parts"][0]["content"]
    assert (image["kind"], image["data"], image["media_type"]) == ("binary", "-_8=", "image/png")
    assert (pdf["kind"], pdf["data"], pdf["media_type"]) == ("binary", "QQ==", "application/pdf")
    assert (address["kind"], address["url"]) == ("image-url", "https://h/a.png")
    assert encoded.losses == [
        Loss("media-form", 1, "content[0]"),
        Loss("media", 1, "content[1].name"),
        Loss("media", 1, "content[3]"),
    ]


def test_a_file_in_a_result_is_listed_so_that_the_framework_takes_it_for_one() -> None:
    url = ImagePart(url="https://h/a.png")
    [request] = write(ChatMessage(role="tool", name="f", tool_call_id="c", content=[TextPart(text="a"), url]))
    [part] = request["parts"]
    assert part["content_file_digests"] == [digest(part["content"][1])]


SIGNED = ThinkPart(text="hm", signature="c2ln")


@pytest.mark.parametrize(
    ("source", "provider"),
    [("anthropic", "anthropic"), ("openai-responses", "openai"), ("kosong/0.30", None), (None, None)],
)
def test_a_signature_is_written_with_the_provider_that_gave_it(source: str | None, provider: str | None) -> None:
    message = ChatMessage(role="assistant", content=[SIGNED, TextPart(text="Cold.")], format=source)
    thought = write(message)[0]["parts"][0]
    assert (thought["signature"], thought["provider_name"]) == ("c2ln", provider)


def signatures(name: str, provider: str | None) -> list[Any]:
    part = {"part_kind": "thinking", "content": "hm", "signature": "c2ln", "provider_name": provider, "id": "rs_1"}
    text = {"part_kind": "text", "content": "Cold."}
    rows = CODEC.decode([{"kind": "response", "parts": [part, text]}]).messages
    payload = encode(get_codec(name), rows).payload
    if name == "anthropic":
        blocks = payload["messages"][0]["content"]
        return [(b["thinking"], b.get("signature")) for b in blocks if b["type"] == "thinking"]
    return [(item["id"], item.get("encrypted_content")) for item in payload if item.get("type") == "reasoning"]


def test_a_signature_goes_back_to_its_provider_and_to_no_other() -> None:
    assert signatures("anthropic", "anthropic") == [("hm", "c2ln")]
    assert signatures("anthropic", "openai") == []
    assert signatures("anthropic", "google") == []
    assert signatures("openai-responses", "openai") == [("rs_1", "c2ln")]  # OpenAI binds a signature to its id
    [(made, signature)] = signatures("openai-responses", "anthropic")
    assert made != "rs_1"
    assert signature is None


def test_reasoning_signed_by_openai_is_not_sent_to_anthropic() -> None:
    message = ChatMessage(role="assistant", content=[SIGNED, TextPart(text="Cold.")], format="openai-responses")
    encoded = encode(get_codec("anthropic"), [message])
    assert encoded.payload["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "Cold."}]}]
    assert {loss.code for loss in encoded.losses} == {"reasoning", "signature"}


@pytest.mark.parametrize(("provider", "blocks"), [("anthropic", ["thinking", "text"]), ("openai", ["text"])])
async def test_the_model_view_keeps_what_anthropic_signed(ledger: Ledger, provider: str, blocks: list[str]) -> None:
    thought = {"part_kind": "thinking", "content": "hm", "signature": "c2ln", "provider_name": provider}
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Oslo?"}]}
    answer = {"kind": "response", "parts": [thought, {"part_kind": "text", "content": "Cold."}]}
    again = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Bergen?"}]}
    await ledger.messages.append("t", Payload([asked, answer, again]), create=True)
    viewed = await ledger.messages.prompt("t", "anthropic")
    content = viewed.payload["messages"][1]["content"]
    kinds = ["text"] if isinstance(content, str) else [block["type"] for block in content]
    assert kinds == blocks


async def test_a_history_is_stored_and_comes_back_in_any_window(ledger: Ledger) -> None:
    await ledger.messages.append("t", Payload(history()), rules="lenient", create=True)
    stored = (await ledger.messages.history("t")).encode("pydantic-ai")
    assert stored.payload == history()
    assert stored.losses == ()
    last = (await ledger.messages.history("t", Turns(1))).encode("pydantic-ai")
    assert last.payload == history()[-1:]
    windows = [
        (await ledger.messages.history("t", Oldest(2, after=seq), branch=0)).encode("pydantic-ai")
        for seq in range(0, 10, 2)
    ]
    parts = [part for window in windows for message in window.payload for part in message["parts"]]
    assert parts == [part for message in history() for part in message["parts"]]


async def test_a_message_without_a_time_does_not_get_the_ledgers(ledger: Ledger) -> None:
    history = [
        {"kind": "request", "parts": [{"content": "Hi", "part_kind": "user-prompt"}]},
        {"kind": "response", "parts": [{"content": "Hello.", "part_kind": "text"}]},
    ]
    await ledger.messages.append("t", Payload(history), create=True)
    assert (await ledger.messages.history("t")).encode("pydantic-ai").payload == history
