"""An item with a call and outputs, and messages as they come out of a store."""

from __future__ import annotations

from typing import Any

from chatledger.formats.message_file import (
    CODEC,
    CodeExecutionOutputBuilder,
    FunctionCallBuilder,
    MessageBuilder,
    MessageOutputBuilder,
)
from chatledger.models import ChatMessage, Loss
from tests.formats.measured import encode


def stored(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages after they rested as plain data, at their positions."""
    return [
        ChatMessage.model_validate({**message.model_dump(), "seq": seq})
        for seq, message in enumerate(messages, start=1)
    ]


def encoded_of(*messages: ChatMessage) -> tuple[Any, list[Loss]]:
    encoded = encode(CODEC, stored(list(messages)))
    return encoded.payload, encoded.losses


def weather() -> Any:
    result = CodeExecutionOutputBuilder().with_stdout("21\n").build()
    call = FunctionCallBuilder().with_name("c").with_function_name("forecast").with_args({"city": "Tokyo"})
    answer = MessageOutputBuilder().with_content("21 degrees").with_nonce("n").build()
    message = MessageBuilder().with_name("m").with_content("How warm?").with_agent_name("sky").with_output(answer)
    return message.with_function_call(call.with_output(result).build()).build()
