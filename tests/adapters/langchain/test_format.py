"""The format on the real classes: objects go in, and equal objects come out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from chatledger import Ledger, Payload
from chatledger.errors import DecodeError, EncodeError
from chatledger.formats import recognise
from chatledger.formats.langchain import CODEC
from chatledger.testing import check_format
from tests.formats.langchain.samples import SAMPLES


class Note(HumanMessage):  # type: ignore[misc]  # without the framework it is Any
    """A class of an application."""

    colour: str = "red"


TALK: list[BaseMessage] = [
    SystemMessage("Be brief."),
    Note("How cold is Oslo?", id="h1", colour="blue"),
    AIMessage(
        content=[{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "I look."}],
        tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
        usage_metadata={"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
        response_metadata={"model_provider": "anthropic"},
        id="run--1",
    ),
    ToolMessage("4 °C", tool_call_id="c1", artifact=[Document("4 °C", metadata={"station": 17})]),
    AIMessageChunk(content="4 °C.", id="run--2"),
]


def dumps(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    return [message_to_dict(message) for message in messages]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_what_the_framework_dumps(name: str) -> None:
    assert dumps(messages_from_dict(SAMPLES[name])) == SAMPLES[name]


async def test_objects_are_recognised_and_come_back_equal(ledger: Ledger) -> None:
    await ledger.messages.append("t", Payload(TALK), create=True)
    history = (await ledger.messages.history("t")).encode("langchain")
    assert history.payload == dumps(TALK)
    models = (await ledger.messages.history("t")).encode("langchain", as_="models").payload
    assert [type(model).__name__ for model in models] == [
        "SystemMessage",
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "AIMessageChunk",
    ]
    assert dumps(models)[2:] == dumps(TALK)[2:]
    assert models[1].colour == "blue"


@pytest.mark.parametrize("name", SAMPLES)
def test_objects_read_as_their_dicts_do(name: str) -> None:
    objects = messages_from_dict(SAMPLES[name])
    assert recognise(objects).name == "langchain"
    assert CODEC.decode(objects) == CODEC.decode(SAMPLES[name])
    assert CODEC.as_models(SAMPLES[name]) == objects


@pytest.mark.parametrize("name", SAMPLES)
def test_what_other_formats_wrote_is_accepted_by_the_framework(name: str) -> None:
    messages = [message.model_copy(update={"format": None}) for message in CODEC.decode(SAMPLES[name]).messages]
    models = CODEC.as_models(CODEC.encode(messages).payload)
    assert [model.text for model in models] == [message.text for message in messages]
    assert [len(model.content_blocks) for model in models]


async def test_a_live_object_is_refused_with_its_path_and_nothing_is_stored(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    with pytest.raises(DecodeError) as caught:
        await ledger.messages.append(
            "t", Payload([HumanMessage("a"), ToolMessage("b", tool_call_id="c", artifact={"live": object()})])
        )
    assert caught.value.path == "$[1].data.artifact.live"
    assert list(await ledger.messages.history("t")) == []


async def test_a_message_that_the_framework_refuses_is_named(ledger: Ledger) -> None:
    payload = [SAMPLES["a chunk"][0], {"type": "event", "data": {"content": "rain", "type": "event"}}]
    await ledger.messages.append("t", Payload(payload), create=True)
    with pytest.raises(EncodeError) as caught:
        (await ledger.messages.history("t")).encode("langchain", as_="models")
    assert caught.value.path == "$[1]"
    assert (await ledger.messages.history("t")).encode("langchain").payload == payload


@pytest.mark.parametrize("name", SAMPLES)
def test_the_format_keeps_what_every_format_promises(name: str) -> None:
    check_format(CODEC, [SAMPLES[name]])
