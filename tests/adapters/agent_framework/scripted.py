"""A chat client of the framework that answers from a script and records what it was asked. No network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message


class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]  # the type checker lacks the framework
    def __init__(self, *replies: Sequence[Any]) -> None:
        super().__init__()
        self.replies = list(replies)
        self.asked: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        assert not stream
        self.asked.append(list(messages))

        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", list(self.replies.pop(0)))])

        return respond()


def calls(name: str, arguments: str, call_id: str = "call_1") -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)
