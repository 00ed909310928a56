"""Messages of other formats as UI messages, and results that come later."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import Ledger, Newest, Payload
from chatledger.formats.ai_sdk import CODEC
from chatledger.models import ChatMessage, ImagePart, Loss, ThinkPart, ToolCall
from tests.formats.ai_sdk.samples import histories
from tests.formats.measured import encode

START = {"type": "step-start"}
APPROVAL = {"id": "p1"}
ASKED = {"type": "tool-remove", "toolCallId": "c1", "state": "approval-requested", "input": {}, "approval": APPROVAL}


def write(*messages: ChatMessage) -> Any:
    return encode(CODEC, messages).payload


def answered(part: dict[str, Any], **result: Any) -> Any:
    """The part after a program added a result to the call in it."""
    [asked] = CODEC.decode([{"id": "a", "role": "assistant", "parts": [START, part]}]).messages
    [message] = write(asked, ChatMessage(role="tool", tool_call_id="c1", **result))
    return message["parts"][1]


def test_the_messages_of_a_turn_are_one_ui_message() -> None:
    call = ToolCall(name="weather", arguments='{"city": "Oslo"}')
    user, answer, later = write(
        ChatMessage(role="user", content="Oslo?", message_id="m1", custom_data={"tab": 1}),
        ChatMessage(role="assistant", reasoning="North.", tool_calls=[call], message_id="m2", seq=2),
        ChatMessage(role="tool", content="4 °C"),
        ChatMessage(role="assistant", content="Cold."),
        ChatMessage(role="user", content=[ImagePart(data="QQ==", mime_type="image/png"), ImagePart(url="https://h/a")]),
    )
    assert user == {"id": "m1", "metadata": {"tab": 1}, "role": "user", "parts": [{"type": "text", "text": "Oslo?"}]}
    part = {"type": "tool-weather", "toolCallId": "call_2_0", "state": "output-available", "input": {"city": "Oslo"}}
    assert answer == {
        "id": "m2",
        "role": "assistant",
        "parts": [
            START,
            {"type": "reasoning", "text": "North.", "state": "done"},
            {**part, "output": "4 °C"},
            START,
            {"type": "text", "text": "Cold.", "state": "done"},
        ],
    }
    assert later["parts"] == [
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QQ=="},
        {"type": "file", "mediaType": "image", "url": "https://h/a"},
    ]


def test_what_has_no_place_is_a_loss() -> None:
    messages = [
        ChatMessage(role="custom", content="Saved.", seq=1),
        ChatMessage(role="tool", content="4", name="weather", tool_call_id="c", seq=2),
        ChatMessage(role="user", content=[ImagePart(id="file-1")], seq=3),
    ]
    encoded = encode(CODEC, messages)
    assert encoded.losses == [
        Loss("left-out", 1, ""),
        Loss("made-up", 2, ""),
        Loss("media", 3, "content[0]"),
        Loss("content-form", 3, "content"),
    ]
    assert encoded.payload[-1]["parts"] == [{"type": "text", "text": ""}]  # the SDK refuses a question without parts


@pytest.mark.parametrize(
    ("source", "metadata"),
    [
        ("anthropic", {"anthropic": {"signature": "c2ln"}}),
        ("openai-responses", {"openai": {"reasoningEncryptedContent": "c2ln"}}),
        ("openai-chat", None),
    ],
)
def test_a_signature_goes_back_to_the_provider_that_gave_it(source: str, metadata: Any) -> None:
    thought = ThinkPart(text="hm", signature="c2ln")
    [message] = write(ChatMessage(role="assistant", content=[thought], format=source))
    assert message["parts"][1].get("providerMetadata") == metadata


def test_a_result_that_comes_later_ends_a_call_in_each_state() -> None:
    yes, no = {**APPROVAL, "approved": True}, {**APPROVAL, "approved": False}
    responded = {**ASKED, "state": "approval-responded"}
    done = answered(ASKED, content="gone")
    assert (done["state"], done["output"], done["approval"]) == ("output-available", "gone", yes)
    failed = answered(ASKED, content="no", is_error=True)
    assert (failed["state"], failed["errorText"], "approval" in failed) == ("output-error", "no", False)
    failed = answered({**responded, "approval": yes}, content="no", is_error=True)
    assert (failed["state"], failed["errorText"], failed["approval"]) == ("output-error", "no", yes)
    refused = answered({**responded, "approval": no}, content="keep it", is_error=True)
    assert (refused["state"], refused["approval"]) == ("output-denied", {**no, "reason": "keep it"})
    assert answered({**ASKED, "state": "input-streaming", "approval": None}, content="x")["output"] == "x"


def test_the_next_step_of_an_own_answer_joins_it() -> None:
    [_, *asked] = CODEC.decode(histories()["approvals"]).messages
    later = [
        ChatMessage(role="tool", tool_call_id="c3", content="removed"),
        ChatMessage(role="assistant", content="Done.", format="openai-chat"),
    ]
    [message] = write(*asked, *later)
    assert message["id"] == "a1"
    assert message["parts"][3]["output"] == "removed"
    assert message["parts"][-2:] == [START, {"type": "text", "text": "Done.", "state": "done"}]


async def test_a_history_is_stored_and_comes_back_in_a_window_too(ledger: Ledger) -> None:
    for name, payload in histories().items():
        await ledger.messages.append(name, Payload(payload, "ai-sdk"), create=True)
        assert (await ledger.messages.history(name)).encode("ai-sdk").payload == payload
        newest = (await ledger.messages.history(name, Newest(1))).encode("ai-sdk").payload
        assert newest == payload[-1:]  # the messages of an answer stay together
