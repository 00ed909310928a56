"""Names that the blocks of a page use and do not make: clients of providers. They answer with the SDK's own objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from anthropic.types import Message
from openai.types.chat import ChatCompletion


def openai() -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "It is 24 °C in Tokyo.",
        "refusal": None,
        "annotations": [],
    }
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5.2", "choices": [choice]}

    async def create(*, model: str, messages: list[dict[str, Any]]) -> ChatCompletion:
        assert messages[-1]["role"] == "user"
        return ChatCompletion.model_validate(answer | {"model": model})

    return {"client": SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))}


def anthropic() -> dict[str, Any]:
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn", "stop_sequence": None}
    content = [{"type": "text", "text": "It is 24 °C in Tokyo."}]
    usage = {"input_tokens": 9, "output_tokens": 9}

    async def create(*, model: str, max_tokens: int, system: str, messages: list[dict[str, Any]]) -> Message:
        assert (system, messages[-1]["role"]) == ("Be brief.", "user")
        return Message.model_validate({**answer, "content": content, "usage": usage, "model": model})

    return {"client": SimpleNamespace(messages=SimpleNamespace(create=create))}


GIVEN: Mapping[str, Callable[[], dict[str, Any]]] = {
    "reference/formats/anthropic.md": anthropic,
    "reference/formats/openai-chat.md": openai,
}
"""By the path of the page below docs."""
