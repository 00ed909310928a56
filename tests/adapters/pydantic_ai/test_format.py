"""The format with the framework's own classes: its objects go in and come out equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic_ai import Agent
from pydantic_ai import messages as ai
from pydantic_ai.models.test import TestModel

from chatledger import Ledger, Payload
from chatledger.errors import DecodeError, EncodeError
from chatledger.formats import format_names, get_codec, losses_of, recognise
from chatledger.models import ChatMessage, ImagePart, TextPart
from chatledger.models.json import same_json
from chatledger.types import PromptFormat
from tests.adapters.pydantic_ai.objects import HISTORY
from tests.formats.any_messages import conversations
from tests.formats.pydantic_ai.samples import history

CODEC: Any = get_codec("pydantic-ai")


def dumped(messages: list[ai.ModelMessage]) -> Any:
    return ai.ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def test_the_recorded_history_is_what_the_framework_dumps() -> None:
    assert same_json(history(), dumped(HISTORY))


def test_objects_go_in_and_come_out_equal() -> None:
    assert recognise(HISTORY).name == "pydantic-ai"
    messages = CODEC.decode(HISTORY).messages
    encoded = CODEC.encode(messages)
    assert list(losses_of(CODEC, messages)) == []
    assert same_json(encoded.payload, dumped(HISTORY))
    assert CODEC.as_models(encoded.payload) == HISTORY


def test_objects_and_dicts_may_stand_in_one_list() -> None:
    mixed = [HISTORY[0], *history()[1:]]
    assert recognise(mixed).name == "pydantic-ai"
    assert same_json(CODEC.encode(CODEC.decode(mixed).messages).payload, history())


@pytest.mark.parametrize("name", [name for name in format_names() if name != "pydantic-ai"])
def test_a_history_that_went_through_another_format_is_one_that_the_framework_loads(name: str) -> None:
    away = get_codec(name).encode(CODEC.decode(HISTORY).messages).payload
    back = CODEC.encode(get_codec(name).decode(away, rules="lenient").messages).payload
    assert len(CODEC.as_models(back)) == len(back) > 0


@settings(max_examples=100, deadline=None)
@given(conversations("pydantic-ai"))
def test_messages_of_other_formats_are_written_as_the_framework_loads_them(messages: list[ChatMessage]) -> None:
    foreign = [message for message in messages if message.format != "pydantic-ai"]
    payload = CODEC.encode(foreign).payload
    try:
        text = json.dumps(payload, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return  # the framework's own JSON knows no lone surrogates
    if "data" in text:
        return  # data that is no base64 is refused; the next test has some that is
    assert len(CODEC.as_models(payload)) == len(payload)


def test_an_image_in_a_result_of_another_format_is_an_image_to_the_framework() -> None:
    data = ImagePart(data="+/8=", mime_type="image/png")
    url = ImagePart(url="https://example.org/a.png")
    message = ChatMessage(role="tool", name="f", tool_call_id="c", content=[TextPart(text="seen"), data, url])
    [request] = CODEC.as_models(CODEC.encode([message]).payload)
    seen, binary, address = request.parts[0].content
    assert (seen, binary.data, binary.media_type) == ("seen", b"\xfb\xff", "image/png")
    assert isinstance(address, ai.ImageUrl)


def test_an_object_of_a_tool_that_looks_like_a_file_is_data() -> None:
    fake = {"kind": "image-url", "url": "https://example.org/a.png"}
    part = ai.ToolReturnPart("f", fake, tool_call_id="c")
    [message] = CODEC.decode([ai.ModelRequest(parts=[part])]).messages
    assert json.loads(message.content) == fake


def test_a_live_object_is_refused_with_the_path_of_its_part() -> None:
    parts = [ai.UserPromptPart("a"), ai.ToolReturnPart("f", "b", tool_call_id="c", metadata=object())]
    with pytest.raises(DecodeError) as caught:
        CODEC.decode([*HISTORY, ai.ModelRequest(parts=parts)])
    assert caught.value.path == f"$[{len(HISTORY)}].parts[1]"
    with pytest.raises(DecodeError) as caught:
        CODEC.decode([ai.ModelRequest(parts=parts[:1], metadata={"live": object()})])
    assert caught.value.path == "$[0]"


def test_a_message_that_the_framework_refuses_is_named_without_its_words() -> None:
    good, bad = history()[-1], {"kind": "response", "parts": [{"part_kind": "secret", "content": "words"}]}
    with pytest.raises(EncodeError) as caught:
        CODEC.as_models([good, bad])
    assert caught.value.path.startswith("$[1]")
    assert "words" not in str(caught.value)


async def test_an_agent_goes_on_from_what_the_ledger_stored(ledger: Ledger) -> None:
    def weather(city: str) -> dict[str, Any]:
        return {"city": city, "t": 4}

    agent = Agent(TestModel(), tools=[weather])
    await ledger.threads.create(thread_id="t")
    first = await agent.run("Oslo?")
    await ledger.messages.append("t", Payload(first.new_messages()))
    stored = (await ledger.messages.history("t")).encode("pydantic-ai", as_="models")
    assert stored.payload == first.all_messages()

    second = await agent.run("And Bergen?", message_history=stored.payload)
    await ledger.messages.append("t", Payload(second.new_messages(), "pydantic-ai"))
    both = await ledger.messages.history("t")
    assert both.encode("pydantic-ai", as_="models").payload == second.all_messages()
    assert [message.role for message in both.messages][:4] == ["user", "assistant", "tool", "assistant"]
    names: tuple[PromptFormat, ...] = ("openai-chat", "openai-responses", "anthropic")
    for name in names:
        assert (await ledger.messages.prompt("t", name)).payload
