"""Events of every kind that ADK's flows make, as its own objects."""

from __future__ import annotations

from typing import Any

from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.genai import types

TIME = 1_790_000_000.123456


def part(**given: Any) -> Any:
    return types.Part(**given)


def content(role: str, *parts: Any) -> Any:
    return types.Content(role=role, parts=list(parts))


def event(number: int, author: str, **given: Any) -> Any:
    return Event(id=f"event-{number}", invocation_id="e-1", author=author, timestamp=TIME + number / 7, **given)


CALL = types.FunctionCall(id="adk-1", name="weather", args={"city": "Oslo", "days": 2})
SECOND = types.FunctionCall(id="adk-2", name="news", args={})


def result(call: Any, response: Any, **given: Any) -> Any:
    return part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response, **given))


BLOB = types.FunctionResponsePart(
    inline_data=types.FunctionResponseBlob(data=b"\xff\xfe>?", mime_type="image/png", display_name="map.png")
)

EVENTS: dict[str, list[Any]] = {
    "a question": [event(1, "user", content=content("user", part(text="Weather?")))],
    "an answer with its usage": [
        event(
            2,
            "helper",
            content=content("model", part(text="Sunny.")),
            model_version="gemini-3-pro",
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3, total_token_count=5),
        )
    ],
    "a signed thought and calls": [
        event(
            3,
            "helper",
            content=content(
                "model",
                part(text="Hm.", thought=True, thought_signature=b"\xff\xfe>?"),
                part(text="I look."),
                part(function_call=CALL, thought_signature=b"sig"),
                part(function_call=SECOND),
            ),
            long_running_tool_ids={"adk-2"},
        )
    ],
    "results": [
        event(
            4,
            "helper",
            content=content(
                "user",
                result(CALL, {"result": "sunny"}),
                result(SECOND, {"items": [1, None], "error": None}, parts=[BLOB]),
                part(text="both"),
            ),
            actions=EventActions(state_delta={"city": "Oslo", "user:units": "C"}, artifact_delta={"map.png": 0}),
        )
    ],
    "an error as a result": [event(5, "helper", content=content("user", result(CALL, {"error": "no network"})))],
    "thoughts of Claude": [
        event(
            6,
            "helper",
            content=content("model", part(text="Hm.", thought=True, thought_signature=b"EqQB+/="), part(text="Yes.")),
            model_version="claude-opus-5",
        )
    ],
    "media": [
        event(
            7,
            "user",
            content=content(
                "user",
                part(text="See"),
                part(inline_data=types.Blob(data=b"\xff\xfe>?", mime_type="image/png", display_name="a.png")),
                part(file_data=types.FileData(file_uri="gs://bucket/a.mp4", mime_type="video/mp4")),
                part(inline_data=types.Blob(data=b"%PDF", mime_type="application/pdf")),
            ),
        )
    ],
    "code": [
        event(
            8,
            "coder",
            content=content(
                "model",
                part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)),
                part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")),
                part(text="2"),
            ),
        )
    ],
    "a change of state": [event(9, "system", actions=EventActions(state_delta={"app:motd": "hi"}))],
    "a transfer": [
        event(
            10,
            "helper",
            content=content("user", result(CALL, {"result": "done"})),
            actions=EventActions(transfer_to_agent="writer"),
            branch="helper.writer",
        )
    ],
    "a compaction": [
        event(
            11,
            "user",
            actions=EventActions(
                compaction=EventCompaction(
                    start_timestamp=TIME,
                    end_timestamp=TIME + 1,
                    compacted_content=content("model", part(text="It was sunny.")),
                )
            ),
        )
    ],
    "an error": [event(12, "helper", error_code="SAFETY", error_message="blocked")],
    "the output of a node": [
        event(13, "flow", output={"answer": [1, 2]}, node_info={"path": "flow@1/node@2"}, custom_metadata={"k": 1})
    ],
}
