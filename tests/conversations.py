"""Small conversations for tests."""

from __future__ import annotations

from typing import Any

from chatledger import ChatMessage, History, ToolCall


def user(text: str, **fields: Any) -> ChatMessage:
    return ChatMessage(role="user", content=text, **fields)


def assistant(text: str | None = None, *, calls: list[ToolCall] | None = None, **fields: Any) -> ChatMessage:
    return ChatMessage(role="assistant", content=text, tool_calls=calls, **fields)


def call(id_: str | None, name: str = "weather", arguments: Any = '{"city": "Tokyo"}') -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def result(id_: str | None, text: str = "sunny", **fields: Any) -> ChatMessage:
    return ChatMessage(role="tool", tool_call_id=id_, content=text, **fields)


def turn(ids: str | None = None) -> list[ChatMessage]:
    """A user's question, two parallel calls with their results, and the answer: five messages."""
    messages = [
        user("What is the weather in Tokyo and in Lima?"),
        assistant(calls=[call("call_0"), call("call_1", arguments='{"city": "Lima"}')]),
        result("call_1"),
        result("call_0"),
        assistant("It is sunny in both."),
    ]
    if ids is None:
        return messages
    return [message.model_copy(update={"message_id": f"{ids}{n}"}) for n, message in enumerate(messages)]


def texts(history: History) -> list[str]:
    return [message.text for message in history.messages]
