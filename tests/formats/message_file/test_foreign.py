"""Messages of other formats read as items, and the losses."""

from __future__ import annotations

from chatledger.formats.message_file import CODEC
from chatledger.models import ChatMessage, Loss, TextPart, ThinkPart, ToolCall
from tests.formats.message_file.examples import encoded_of, stored, weather


def test_another_formats_conversation_becomes_items() -> None:
    payload, losses = encoded_of(
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="How warm?", run_id="r"),
        ChatMessage(
            role="assistant",
            content=[ThinkPart(text="hm"), TextPart(text="I look.")],
            tool_calls=[ToolCall(id="a", name="f", arguments='{"b":1}'), ToolCall(id="a", name="f", arguments="{")],
        ),
        ChatMessage(role="tool", tool_call_id="a", content="21"),
        ChatMessage(role="tool", tool_call_id="z", content="?"),
    )
    [item] = payload
    first, second = item["function_calls"]
    assert (item["content"], item["history"]) == ("How warm?", [{"run_id": "r"}])
    assert [output["content"] for output in item["outputs"]] == ["I look.", "?"]
    assert [(call["name"], call["args"]) for call in (first, second)] == [("a", {"b": 1}), (None, {"_raw": "{"})]
    assert first["outputs"] == [{"content": "21", "mime_type": "text/plain", "nonce": "output_4_0"}]
    assert losses == [
        Loss("left-out", 1, ""),
        Loss("run-id", 2, "run_id"),
        Loss("split", 3, ""),
        Loss("reasoning", 3, "content[0]"),
        Loss("arguments-form", 3, "tool_calls[0].arguments"),
        Loss("call-id", 3, "tool_calls[1].id"),
        Loss("arguments", 3, "tool_calls[1].arguments"),
        Loss("name", 4, "name"),
        Loss("merged", 5, ""),
        Loss("role", 5, "role"),
        Loss("call-id", 5, "tool_call_id"),
    ]


def test_outputs_whose_item_is_not_in_the_window_are_an_empty_messages() -> None:
    payload, losses = encoded_of(*stored(CODEC.decode([weather()]).messages)[3:])
    assert (payload[0]["content"], payload[0]["outputs"][0]["content"]) == ("", "21 degrees")
    assert [loss.code for loss in losses] == ["made-up", "name", "residual"]
