"""Messages that were read, written again after a program edited them."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.openai_responses import CODEC
from chatledger.models import (
    TextPart,
    ToolCall,
)
from tests.formats.openai_responses.test_foreign import lost, said, written


def test_an_edited_message_keeps_what_it_still_has() -> None:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": []}
    [message] = CODEC.decode([{**item, "content": [part]}]).messages
    edited = message.model_copy(update={"content": [TextPart(text="b")]})
    assert written(edited) == [{**item, "content": [{**part, "text": "b"}]}]
    assert lost(edited) == []
    longer = message.model_copy(update={"content": "b"})
    assert written(longer) == [{"role": "assistant", "content": "b"}]
    assert lost(longer) == [("residual", "residual")]


@pytest.mark.parametrize("form", [[], {}, "function_call_output", 7])
def test_a_residual_that_names_another_type_is_not_used(form: Any) -> None:
    call = ToolCall(id="a", name="f", arguments="{}")
    message = said("assistant", tool_calls=[call], format="openai-responses")
    named = message.model_copy(update={"residual": {"items": [{"kind": "call", "form": form}]}})
    assert written(named) == written(message)


@pytest.mark.parametrize("added", ["part", "call"])
def test_fields_that_a_program_adds_are_written(added: str) -> None:
    [message] = CODEC.decode([{"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f"}]).messages
    call = ToolCall(id="b", name="g", arguments="{}")
    change = {"content": "Hi"} if added == "part" else {"tool_calls": [*(message.tool_calls or ()), call]}
    assert len(written(message.model_copy(update=change))) == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"reasoning": "Hm"}, "reasoning"),
        ({"name": "ada"}, "name"),
        ({"custom_data": {"a": 1}}, "custom-data"),
        ({"content": [TextPart(text="Hi", extras={"a": 1})]}, "extras"),
    ],
)
def test_a_field_that_a_program_adds_to_a_read_message_is_a_loss(change: dict[str, Any], code: str) -> None:
    plain = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    for item in (plain, {**plain, "id": "msg_1"}):
        [message] = CODEC.decode([item]).messages
        assert [loss[0] for loss in lost(message.model_copy(update=change))] == [code]
