"""Messages that were read, written again after a program edited them or added to them."""

from __future__ import annotations

from chatledger.formats.anthropic import CODEC
from chatledger.models import ChatMessage, ImagePart, TextPart
from tests.conversations import result
from tests.formats.anthropic.test_foreign import written
from tests.formats.openai_chat.strategies import Json


def test_an_edited_message_is_written_with_its_edit() -> None:
    cached = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
    [message] = CODEC.decode([{"content": [cached], "role": "user"}]).messages
    edited = message.model_copy(update={"content": [TextPart(text="Ho")]})
    assert written(edited)["messages"] == [{"content": [{**cached, "text": "Ho"}], "role": "user"}]
    other = message.model_copy(update={"content": [ImagePart(url="u")]})
    assert block_of(other) == {"type": "image", "source": {"type": "url", "url": "u"}}


def block_of(message: ChatMessage) -> Json:
    return written(message)["messages"][0]["content"][0]


def test_a_synthetic_result_joins_the_results_that_came() -> None:
    came = CODEC.decode([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]).messages
    [message] = written(*came, result("b", "interrupted", is_error=True, state="synthetic"))["messages"]
    assert [one["tool_use_id"] for one in message["content"]] == ["a", "b"]
