"""Bytes are no text: an id, a name or words that are bytes are refused at every level, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import ValidationError

from chatledger import (
    ChatMessage,
    Feedback,
    InvalidArgument,
    Ledger,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from chatledger.models import LENIENT
from tests.conversations import assistant, user

FIELDS = ("role", "content", "reasoning", "name", "tool_call_id", "message_id", "run_id", "format")
odd: Any = b"x"

BUILT: dict[str, Callable[[], object]] = {
    **{f"message {name}": partial(ChatMessage.model_validate, {"role": "user", name: odd}) for name in FIELDS},
    "lenient message": lambda: ChatMessage.model_validate({"role": "user", "message_id": odd}, context=LENIENT),
    "bytearray": lambda: user("x", message_id=bytearray(b"x")),
    "call id": lambda: ToolCall(id=odd, name="f"),
    "call name": lambda: ToolCall(name=odd),
    "call arguments": lambda: ToolCall(name="f", arguments=odd),
    "text": lambda: TextPart(text=odd),
    "signature": lambda: ThinkPart(text="a", signature=odd),
    "text delta": lambda: TextDelta(text=odd),
    "reasoning delta": lambda: ReasoningDelta(signature=odd),
    "call delta": lambda: ToolCallDelta(name=odd),
    "score key": lambda: Feedback(run_id="r", key=odd, score=1),
    "score run": lambda: Feedback(run_id=odd, key="k", score=1),
    "usage details": lambda: Usage(details={odd: 1}),
}


@pytest.mark.parametrize("build", BUILT.values(), ids=BUILT)
def test_bytes_are_refused_where_a_model_is_built(build: Callable[[], object]) -> None:
    with pytest.raises(ValidationError, match="valid string"):
        build()


COPIES = [
    *(user("Hi").model_copy(update={name: odd}) for name in FIELDS),
    assistant(calls=[ToolCall(name="f").model_copy(update={"id": odd})]),
    assistant(calls=[ToolCall(name="f").model_copy(update={"name": odd})]),
    ChatMessage(role="user", content=[TextPart(text="a").model_copy(update={"text": odd})]),
]


@pytest.mark.parametrize("rules", ["lenient", "strict"])
async def test_bytes_in_a_copy_that_skipped_validation_are_refused(ledger: Ledger, rules: Any) -> None:
    await ledger.threads.create("t")
    for message in COPIES:
        with pytest.raises((ValidationError, InvalidArgument)):
            await ledger.messages.append("t", [user("a"), message], rules=rules)
    assert (await ledger.messages.history("t")).last_seq == 0
