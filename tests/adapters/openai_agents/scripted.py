"""A model of the SDK that answers from a script and records what it was asked. No network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_reasoning_item import ResponseReasoningItem, Summary


class Scripted(Model):  # type: ignore[misc]  # the type checker's environment does not have the SDK
    def __init__(self, *outputs: Sequence[Any]) -> None:
        self.outputs = list(outputs)
        self.asked: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        self.asked.append(input if isinstance(input, list) else [{"role": "user", "content": input}])
        return ModelResponse(output=list(self.outputs.pop(0)), usage=Usage(), response_id=f"resp_{len(self.asked)}")

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def says(text: str, number: int = 1) -> Any:
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=f"msg_{number}", content=[part], role="assistant", status="completed", type="message"
    )


def thinks(text: str, number: int = 1) -> Any:
    summary = [Summary(text=text, type="summary_text")]
    return ResponseReasoningItem(id=f"rs_{number}", summary=summary, type="reasoning", encrypted_content="gAAA")


def calls(name: str, arguments: str, number: int = 1) -> Any:
    return ResponseFunctionToolCall(
        id=f"fc_{number}", call_id=f"call_{number}", name=name, arguments=arguments, type="function_call"
    )
