"""Every type of item that the installed SDK knows comes back as it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.conversations.conversation_item import ConversationItem
from openai.types.responses.response_input_item_param import ResponseInputItemParam

from chatledger import Ledger
from chatledger.server.conversations.item_types import ITEM_TYPES
from tests.server.conversations.examples import EXAMPLES, REFUSED

READ = {model.model_fields["type"].annotation: model for model in get_args(get_args(ConversationItem)[0])}
"""The classes that the client makes of items, by the Literal of their type."""
CLASSES: dict[str, Any] = {get_args(kind)[0]: model for kind, model in READ.items()}


def batches() -> Iterator[list[dict[str, Any]]]:
    items = list(EXAMPLES.values())
    for at in range(0, len(items), 20):
        yield items[at : at + 20]


def test_each_type_that_the_client_sends_has_an_example() -> None:
    assert {kind.__name__ for kind in get_args(ResponseInputItemParam)} == EXAMPLES.keys() | REFUSED.keys()


def test_each_type_that_the_client_reads_is_known_and_has_an_example() -> None:
    assert CLASSES.keys() == ITEM_TYPES.keys()
    assert CLASSES.keys() == {item.get("type", "message") for item in EXAMPLES.values()}


def test_the_types_that_have_a_status_are_those_of_the_client() -> None:
    required = {
        kind
        for kind, model in CLASSES.items()
        if "status" in model.model_fields and model.model_fields["status"].is_required()
    }
    assert {kind for kind, known in ITEM_TYPES.items() if known.has_status} == required


async def test_each_item_comes_back_as_it_was_sent_with_an_id_and_a_status(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create()
    for batch in batches():
        await openai.conversations.items.create(conversation.id, items=batch)  # type: ignore[arg-type]
    read = [item async for item in openai.conversations.items.list(conversation.id, order="asc", limit=7)]
    assert len(read) == len(EXAMPLES)
    for item, sent in zip(read, EXAMPLES.values(), strict=True):
        kind = sent.get("type", "message")
        assert type(item) is CLASSES[kind]
        got = item.model_dump(exclude_unset=True)
        assert got["id"] == sent.get("id", got["id"])
        assert got["id"].startswith(f"{ITEM_TYPES[kind].prefix}_")
        missing = [
            name for name, field in CLASSES[kind].model_fields.items() if field.is_required() and name not in got
        ]
        assert missing == []
        if isinstance(sent.get("content"), str):
            assert got["content"] == [{"type": "input_text", "text": sent["content"]}]
            sent = {**sent, "content": got["content"]}
        assert {name: value for name, value in got.items() if name in sent} == sent
        assert got.keys() - sent.keys() <= {"id", "status", "type"}
        assert type(await openai.conversations.items.retrieve(got["id"], conversation_id=conversation.id)) is type(item)


async def test_the_ledger_has_the_items_as_they_were_sent(openai: AsyncOpenAI, ledger: Ledger) -> None:
    conversation = await openai.conversations.create()
    for batch in batches():
        await openai.conversations.items.create(conversation.id, items=batch)  # type: ignore[arg-type]
    history = (await ledger.messages.history(conversation.id)).encode("openai-responses", as_="dicts")
    assert history.payload == list(EXAMPLES.values())
    chat = (await ledger.messages.history(conversation.id)).encode("openai-chat", as_="dicts")
    assert chat.payload[0] == {"role": "user", "content": "What is the weather in Tokyo?"}


@pytest.mark.parametrize("item", REFUSED.values(), ids=REFUSED)
async def test_what_only_a_request_to_a_model_holds_is_refused(openai: AsyncOpenAI, item: Any) -> None:
    conversation = await openai.conversations.create()
    with pytest.raises(BadRequestError) as raised:
        await openai.conversations.items.create(conversation.id, items=[EXAMPLES["Message"], item])  # type: ignore[list-item]
    assert raised.value.param == "items[1].type"
    assert (await openai.conversations.items.list(conversation.id)).data == []


async def test_an_item_of_a_type_that_is_new_is_kept(openai: AsyncOpenAI) -> None:
    new: Any = {"type": "dream", "of": ["sheep"]}
    conversation = await openai.conversations.create(items=[new])
    [item] = (await openai.conversations.items.list(conversation.id)).data
    read = item.to_dict()
    assert str(read.pop("id")).startswith("item_")
    assert read == new
