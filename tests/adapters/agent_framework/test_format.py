"""The format with the framework's own classes: they go in, they come out, and the samples are what they dump."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from agent_framework import Content, Message
from anthropic.types import ThinkingBlock
from openai.types.responses.response_reasoning_item import Summary

from chatledger import Ledger, Payload
from chatledger.errors import DecodeError, EncodeError
from chatledger.formats import get_codec, recognise
from chatledger.formats.agent_framework import CODEC
from chatledger.models.json import same_json
from tests.formats.agent_framework.samples import SAMPLES

LOADABLE = [name for name in SAMPLES if name != "with every field"]


@pytest.mark.parametrize("name", LOADABLE)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_sample_is_what_the_framework_dumps_and_comes_back_as_objects(name: str) -> None:
    objects = [Message.from_dict(source) for source in SAMPLES[name]]
    assert same_json([message.to_dict() for message in objects], SAMPLES[name])
    assert recognise(objects) is CODEC
    decoded = CODEC.decode(objects)
    assert decoded == CODEC.decode(SAMPLES[name])
    back = CODEC.as_models(CODEC.encode(decoded.messages).payload)
    assert same_json([message.to_dict() for message in back], SAMPLES[name])


async def test_objects_are_stored_and_given_back(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", Payload([Message("user", ["Oslo?"]), Message("assistant", ["Cold."])]))
    stored = (await ledger.messages.history("t")).encode("agent-framework", as_="models")
    assert [(type(message), message.text) for message in stored.payload] == [(Message, "Oslo?"), (Message, "Cold.")]


def thought(raw: Any, **fields: Any) -> Message:
    return Message("assistant", [Content.from_text_reasoning(text="North.", raw_representation=raw, **fields)])


BLOCK = ThinkingBlock(type="thinking", thinking="North.", signature="c2ln")
SUMMARY = Summary(type="summary_text", text="North.")


@pytest.mark.parametrize(
    ("message", "own"),
    [
        (thought(BLOCK, protected_data="c2ln"), "anthropic"),
        (thought([BLOCK, BLOCK], protected_data="c2ln"), "anthropic"),
        (thought(SUMMARY, protected_data="c2ln", id="rs_1"), "openai-responses"),
        (thought(SUMMARY, protected_data="c2ln"), "openai-responses"),
        (thought(SimpleNamespace(), protected_data="c2ln"), None),
        (thought(None, protected_data="c2ln"), None),
        (thought(None, protected_data="c2ln", id="rs_1"), "openai-responses"),
    ],
)
async def test_a_provider_is_sent_its_own_signatures_alone(ledger: Ledger, message: Message, own: Any) -> None:
    """The object of the provider's SDK tells whose a signature is. The ledger keeps it."""
    await ledger.threads.create("t", rules="lenient")
    message.contents.append(Content.from_text("Cold."))
    await ledger.messages.append("t", Payload([Message("user", ["Oslo?"]), message]))
    sent = (await ledger.messages.prompt("t", "anthropic")).payload
    assert ("c2ln" in str(sent)) == (own == "anthropic")
    sent = (await ledger.messages.history("t")).encode("openai-responses").payload
    assert ("c2ln" in str(sent)) == (own == "openai-responses")
    again = (await ledger.messages.history("t")).encode("agent-framework").payload
    assert same_json(again[1], message.to_dict())


def test_a_citation_leaves_its_sdk_object_behind() -> None:
    citation = {"type": "citation", "url": "https://example.com", "raw_representation": object()}
    message = Message("assistant", [Content.from_text("Cold.", annotations=[citation])])
    [written] = CODEC.encode(CODEC.decode([message]).messages).payload
    assert written["contents"][0]["annotations"] == [{"type": "citation", "url": "https://example.com"}]


def test_a_live_value_is_refused_with_its_path() -> None:
    message = Message("user", ["a"], additional_properties={"client": {"open": object()}})
    with pytest.raises(DecodeError) as raised:
        CODEC.decode([message])
    assert raised.value.path == "$[0].additional_properties.client.open"


def test_a_message_that_the_framework_refuses_is_named() -> None:
    payload = [SAMPLES["media"][0], {**SAMPLES["media"][0], "unknown": 1}]
    with pytest.raises(EncodeError) as raised:
        CODEC.as_models(payload)
    assert raised.value.path == "$[1]"


def test_messages_of_another_format_load_as_messages_of_the_framework() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "4"},
    ]
    messages = CODEC.as_models(CODEC.encode(get_codec("openai-chat").decode(chat).messages).payload)
    assert messages[0].contents[0].has_top_level_media_type("image")
    assert messages[1].contents[0].parse_arguments() == {}
    assert messages[2].to_dict() == Message("tool", [Content.from_function_result("a", result="4")]).to_dict()
