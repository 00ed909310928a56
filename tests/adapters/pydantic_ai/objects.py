"""Objects of the real framework. `python -m tests.adapters.pydantic_ai.objects` rewrites the sample."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pydantic_ai import messages as ai
from pydantic_ai.usage import RequestUsage

from tests.formats.pydantic_ai.samples import PATH

TIME = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)
ASK = ai.ModelRequest(
    parts=[
        ai.SystemPromptPart("Be short.", timestamp=TIME),
        ai.UserPromptPart(
            [
                "What is this?",
                ai.ImageUrl("https://example.org/a.png"),
                ai.BinaryImage(b"\x89PNG\xff\xfe", media_type="image/png"),
                ai.CachePoint(),
                ai.UploadedFile("file-1", provider_name="openai"),
                ai.TextContent("tagged", metadata={"a": 1}),
                ai.AudioUrl("https://example.org/a.mp3"),
                ai.VideoUrl("https://example.org/a.mp4"),
                ai.DocumentUrl("https://example.org/a.pdf"),
            ],
            timestamp=TIME,
        ),
    ],
    timestamp=TIME,
    instructions="Be kind.",
    run_id="run-1",
    conversation_id="conversation-1",
    metadata={"x": 1},
)
CALLS = ai.ModelResponse(
    parts=[
        ai.ThinkingPart("hm", id="rs_1", signature="c2ln", provider_name="anthropic"),
        ai.TextPart("Wait.", id="msg_1"),
        ai.ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="c1"),
        ai.ToolCallPart("tides", '{"city":"Oslo"}', tool_call_id="c2"),
        ai.NativeToolCallPart("web_search", {"q": "a"}, tool_call_id="n1", provider_name="anthropic"),
        ai.NativeToolReturnPart("web_search", {"r": [1]}, tool_call_id="n1", provider_name="anthropic", timestamp=TIME),
        ai.FilePart(ai.BinaryImage(b"abc", media_type="image/png")),
        ai.CompactionPart("short", provider_name="anthropic"),
    ],
    usage=RequestUsage(input_tokens=3, output_tokens=4, details={"reasoning_tokens": 2}),
    model_name="m",
    timestamp=TIME,
    provider_name="anthropic",
    provider_details={"finish_reason": "x"},
    provider_response_id="resp_1",
    finish_reason="tool_call",
    run_id="run-1",
    conversation_id="conversation-1",
    metadata={"k": [1]},
)
RESULTS = ai.ModelRequest(
    parts=[
        ai.ToolReturnPart("weather", {"t": 4}, tool_call_id="c1", timestamp=TIME, metadata={"m": 1}),
        ai.ToolReturnPart("tides", "none", tool_call_id="c2", timestamp=TIME, outcome="failed"),
        ai.UserPromptPart("Go on.", timestamp=TIME),
    ],
    timestamp=TIME,
    run_id="run-1",
)
SEEN = [
    ai.ModelResponse(parts=[ai.ToolCallPart("camera", None, tool_call_id="c3")], timestamp=TIME),
    ai.ModelRequest(
        parts=[
            ai.ToolReturnPart(
                "camera",
                [
                    "seen",
                    ai.ImageUrl("https://example.org/b.png"),
                    ai.BinaryImage(b"\xfb\xff", media_type="image/png"),
                ],
                tool_call_id="c3",
                timestamp=TIME,
            )
        ]
    ),
]
ANSWER = ai.ModelResponse(parts=[ai.TextPart("Cold.")], timestamp=TIME)
FEEDBACK = ai.ModelRequest(
    parts=[ai.RetryFeedbackPart("Answer in one word.", retry=ai.RetryInfo("model_retry"), timestamp=TIME)]
)
HISTORY: list[ai.ModelMessage] = [ASK, CALLS, RESULTS, *SEEN, ANSWER, FEEDBACK]

if __name__ == "__main__":
    dumped = ai.ModelMessagesTypeAdapter.dump_python(HISTORY, mode="json")
    PATH.write_text(json.dumps(dumped, indent=1) + "\n", encoding="utf-8")
