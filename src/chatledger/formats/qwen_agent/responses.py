"""What a call of a model gives back, and what it used."""

from __future__ import annotations

from typing import Any

from chatledger.formats.qwen_agent.base import BaseModelCompatibleDict
from chatledger.formats.qwen_agent.calls import FunctionCall
from chatledger.formats.qwen_agent.messages import Message


class ModelResponse(BaseModelCompatibleDict):
    messages: list[Message]
    usage: dict[Any, Any] | None = None
    model: str | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    created: int | None = None

    def get_content(self) -> str:
        """The text of the last message."""
        return self.messages[-1].get_text_content() if self.messages else ""

    def get_function_calls(self) -> list[FunctionCall]:
        return [message.function_call for message in self.messages if message.function_call]


class Usage(BaseModelCompatibleDict):
    """Tokens and their price. In a sum a missing cost counts as 0, so two missing ones give 0.0."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0),
        )
