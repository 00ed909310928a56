"""A conversation of other formats, for the formats that carry what they cannot express."""

from __future__ import annotations

from chatledger.models import AudioPart, ChatMessage, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall

FOREIGN = [
    ChatMessage(role="system", content="Be short.", name="ada", format="openai-chat"),
    ChatMessage(
        role="user",
        content=[
            TextPart(text="this?", extras={"cache": 1}),
            ImagePart(data="QQ==", mime_type="image/png"),
            AudioPart(data="QQ==", mime_type="audio/wav"),
            OpaquePart(type="later", value={"type": "later", "x": 1}),
        ],
        format="openai-chat",
        residual={"keys": ["content", "role"], "parts": {"0": {"extra": {"x": 1}}}},
    ),
    ChatMessage(
        role="assistant",
        content=[ThinkPart(text="North.", signature="c2ln"), TextPart(text="Wait.")],
        tool_calls=[
            ToolCall(id="c1", name="weather", arguments={"city": "Oslo"}, extras={"x": 1}),
            ToolCall(name="tides", arguments="{city"),
        ],
        run_id="run-1",
        response_metadata={"model": "m"},
        format="anthropic",
        residual={"calls_at": [0]},
    ),
    ChatMessage(role="tool", content="4 °C", tool_call_id="c1", is_error=True, format="anthropic"),
    ChatMessage(role="tool", content="low", format="openai-responses", residual={"items": [{"kind": "output"}]}),
    ChatMessage(role="assistant", content="Cold.", reasoning="So.", state="interrupted", custom_data={"mood": "good"}),
    ChatMessage(role="custom", content="Saved.", custom_data={"chatledger": 1, "role": "narrator"}),
]
"""Messages without seqs and ids, as a program might append them."""
