"""A model of ADK that answers from a script and records what it was asked. No network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.models import BaseLlm, LlmResponse
from google.genai import types
from pydantic import PrivateAttr


class Scripted(BaseLlm):  # type: ignore[misc]  # the type checker's environment does not have ADK
    model: str = "scripted"
    _outputs: list[list[Any]] = PrivateAttr(default_factory=list)
    _asked: list[list[Any]] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *outputs: list[Any]) -> Scripted:
        model = cls()
        model._outputs = list(outputs)
        return model

    @property
    def asked(self) -> list[list[Any]]:
        """The contents of each request."""
        return self._asked

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        self._asked.append([content.model_copy(deep=True) for content in llm_request.contents])
        yield LlmResponse(
            content=types.Content(role="model", parts=self._outputs.pop(0)), model_version="gemini-3-scripted"
        )


def says(text: str) -> list[Any]:
    return [types.Part(text=text)]


def thinks_and_calls(name: str, **arguments: Any) -> list[Any]:
    return [
        types.Part(text="Hm.", thought=True, thought_signature=b"\xff\xfe>?"),
        types.Part(function_call=types.FunctionCall(name=name, args=arguments), thought_signature=b"sig"),
    ]
