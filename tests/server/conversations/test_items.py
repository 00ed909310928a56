"""The items of a conversation: their order, their pages, their ids, and repeats."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError

from chatledger import ChatMessage, Ledger, TextDelta, ToolCall


def user(text: str, **fields: Any) -> Any:
    return {"role": "user", "content": text, **fields}


async def texts(openai: AsyncOpenAI, conversation_id: str, **options: Any) -> list[str]:
    """The texts of the items, read page by page."""
    found = openai.conversations.items.list(conversation_id, **options)
    return [item.to_dict()["content"][0]["text"] async for item in found]  # type: ignore[index]


@pytest.mark.parametrize("limit", [1, 7, 20, 100])
async def test_every_page_size_gives_each_item_once_in_order(openai: AsyncOpenAI, limit: int) -> None:
    conversation = await openai.conversations.create()
    wanted = [str(number) for number in range(60)]
    for at in range(0, 60, 20):
        made = await openai.conversations.items.create(
            conversation.id, items=[user(text) for text in wanted[at : at + 20]]
        )
        assert [item.to_dict()["content"][0]["text"] for item in made.data] == wanted[at : at + 20]  # type: ignore[index]
    assert await texts(openai, conversation.id, order="asc", limit=limit) == wanted
    assert await texts(openai, conversation.id, limit=limit) == wanted[::-1]


async def test_has_more_is_true_only_if_there_are_more(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create(items=[user("1"), user("2"), user("3")])
    pages = openai.conversations.items
    for order in ("asc", "desc"):
        ids = [item.id async for item in pages.list(conversation.id, order=order)]
        page = await pages.list(conversation.id, order=order, limit=2)
        assert (page.has_more, page.last_id, page.to_dict()["first_id"]) == (True, ids[1], ids[0])
        page = await pages.list(conversation.id, order=order, limit=2, after=ids[0])  # type: ignore[arg-type]
        assert (page.has_more, [item.id for item in page.data]) == (False, ids[1:])
        page = await pages.list(conversation.id, order=order, after=ids[2])  # type: ignore[arg-type]
        assert (page.has_more, page.data, page.last_id) == (False, [], None)


async def test_a_client_that_deletes_each_item_reads_all_of_them(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create(items=[user(str(number)) for number in range(9)])
    for order in ("desc", "asc"):
        await openai.conversations.items.create(conversation.id, items=[user("more")])
        found = 0
        async for item in openai.conversations.items.list(conversation.id, limit=2, order=order):
            await openai.conversations.items.delete(str(item.id), conversation_id=conversation.id)
            found += 1
        assert found == (10 if order == "desc" else 1)


async def test_a_deleted_item_is_gone_and_its_words_with_it(openai: AsyncOpenAI, ledger: Ledger) -> None:
    conversation = await openai.conversations.create(items=[user("keep", id="msg_1"), user("secret", id="msg_2")])
    items = openai.conversations.items
    assert await items.delete("msg_2", conversation_id=conversation.id) == conversation
    for call in (items.retrieve, items.delete):
        with pytest.raises(NotFoundError):
            await call("msg_2", conversation_id=conversation.id)
    assert await texts(openai, conversation.id) == ["keep"]
    [change] = await ledger.messages.revisions(conversation.id, "msg_2")
    assert "secret" not in str(change)


async def test_a_call_can_be_deleted_without_its_result(openai: AsyncOpenAI) -> None:
    call: Any = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    result: Any = {"type": "function_call_output", "id": "fco_1", "call_id": "c", "output": "1"}
    conversation = await openai.conversations.create(items=[call, result])
    await openai.conversations.items.delete("fc_1", conversation_id=conversation.id)
    [left] = (await openai.conversations.items.list(conversation.id)).data
    assert left.id == "fco_1"


async def test_an_item_is_found_only_in_its_own_conversation(openai: AsyncOpenAI) -> None:
    first = await openai.conversations.create(items=[user("1", id="msg_1")])
    second = await openai.conversations.create(items=[user("2", id="msg_1"), user("3", id="msg_3")])
    items = openai.conversations.items
    read = await items.retrieve("msg_1", conversation_id=second.id)
    assert read.to_dict()["content"][0]["text"] == "2"  # type: ignore[index]
    for call in (items.retrieve, items.delete):
        with pytest.raises(NotFoundError):
            await call("msg_3", conversation_id=first.id)
    with pytest.raises(NotFoundError):
        await items.list(first.id, after="msg_3")
    assert await texts(openai, second.id, order="asc") == ["2", "3"]


async def test_the_same_items_again_are_stored_once(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create()
    items: list[Any] = [user("1", id="msg_1"), user("2", id="msg_2")]
    first = await openai.conversations.items.create(conversation.id, items=items)
    assert await openai.conversations.items.create(conversation.id, items=items) == first
    assert await texts(openai, conversation.id, order="asc") == ["1", "2"]


async def test_a_request_again_with_its_key_is_stored_once(openai: AsyncOpenAI) -> None:
    key = {"Idempotency-Key": "k"}
    made = [await openai.conversations.create(items=[user("1")], extra_headers=key) for _ in range(2)]
    assert made[0] == made[1]
    conversation = made[0]
    create = openai.conversations.items.create
    first = await create(conversation.id, items=[user("2"), user("3")], extra_headers=key)
    assert await create(conversation.id, items=[user("2"), user("3")], extra_headers=key) == first
    with pytest.raises(ConflictError):
        await create(conversation.id, items=[user("2"), user("4")], extra_headers=key)
    assert await texts(openai, conversation.id, order="asc") == ["1", "2", "3"]


async def test_an_id_of_another_item_is_a_conflict_that_the_client_does_not_repeat(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create(items=[user("1", id="msg_1")])
    for items in ([user("2", id="msg_1")], [user("3", id="msg_3"), user("4", id="msg_3")]):
        with pytest.raises(ConflictError) as raised:
            await openai.conversations.items.create(conversation.id, items=items)
        assert raised.value.response.headers["x-should-retry"] == "false"
        assert raised.value.code == "id_conflict"
    assert await texts(openai, conversation.id) == ["1"]


WRONG: dict[str, tuple[Any, str]] = {
    "no object": ("hello", "items[1]"),
    "no type": ({"text": "hello"}, "items[1].type"),
    "a number as the type": ({"type": 1}, "items[1].type"),
    "a list as the type": ({"type": [1]}, "items[1].type"),
    "an object as the type of a message": (user("1", type={"a": 1}), "items[1].type"),
    "an unknown role": ({"role": "narrator", "content": "Once"}, "items[1].role"),
    "no content": ({"role": "user"}, "items[1].content"),
    "a part without a text": (
        {"role": "user", "content": [{"type": "input_text", "text": 1}]},
        "items[1].content[0].text",
    ),
    "a call without a name": ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "items[1].name"),
    "a call without an id": ({"type": "function_call", "name": "f", "arguments": "{}"}, "items[1].call_id"),
    "a result without an output": ({"type": "function_call_output", "call_id": "c"}, "items[1].output"),
    "an empty id": (user("1", id=""), "items[1].id"),
    "a number as the id": (user("1", id=7), "items[1].id"),
    "an id that is too long": (user("1", id="é" * 257), "items[1].id"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_item_is_refused_with_its_place(openai: AsyncOpenAI, name: str) -> None:
    item, place = WRONG[name]
    conversation = await openai.conversations.create()
    with pytest.raises(BadRequestError) as raised:
        await openai.conversations.items.create(conversation.id, items=[user("1"), item])
    assert raised.value.param == place
    assert (await openai.conversations.items.list(conversation.id)).data == []


async def test_an_id_may_hold_any_character(openai: AsyncOpenAI) -> None:
    ids = ["a/b", "a b?c#d", "%2F", "日本", "msg_1.1", "x" * 512]
    conversation = await openai.conversations.create(items=[user(id_, id=id_) for id_ in ids])
    for id_ in ids:
        read = await openai.conversations.items.retrieve(id_, conversation_id=conversation.id)
        assert read.to_dict()["content"][0]["text"] == id_  # type: ignore[index]
    assert await texts(openai, conversation.id, order="asc", limit=1) == ids


async def test_messages_of_other_programs_are_items_too(openai: AsyncOpenAI, ledger: Ledger) -> None:
    """One with a text and two calls is three items, and a custom one, which no model gets, is none."""
    conversation = await openai.conversations.create(items=[user("1")])
    calls = [ToolCall(id=id_, name="f", arguments="{}") for id_ in ("a", "b")]
    await ledger.messages.append(
        conversation.id,
        [
            ChatMessage(role="custom", content="note"),
            ChatMessage(role="assistant", content="2", tool_calls=calls, message_id="m"),
            ChatMessage(role="tool", tool_call_id="a", content="4", message_id="r"),
        ],
    )
    items = openai.conversations.items
    found = [item async for item in items.list(conversation.id, limit=1, order="asc")]
    assert [(item.type, item.id) for item in found[1:]] == [
        ("message", "m"),
        ("function_call", "m.1"),
        ("function_call", "m.2"),
        ("function_call_output", "r"),
    ]
    assert [item async for item in items.list(conversation.id, limit=1)] == found[::-1]
    for item in found:
        assert await items.retrieve(str(item.id), conversation_id=conversation.id) == item
    for id_ in ("m", "m.1"):
        with pytest.raises(BadRequestError):
            await items.delete(id_, conversation_id=conversation.id)
    with pytest.raises(NotFoundError):
        await items.retrieve("m.3", conversation_id=conversation.id)


async def test_a_message_that_is_still_written_is_in_progress(openai: AsyncOpenAI, ledger: Ledger) -> None:
    conversation = await openai.conversations.create(items=[user("1")])
    async with ledger.messages.stream(conversation.id, message=ChatMessage.assistant(message_id="msg_2")) as draft:
        await draft.feed(TextDelta(text="Let me"))
        await draft.flush()
        item = await openai.conversations.items.retrieve("msg_2", conversation_id=conversation.id)
        assert item.to_dict()["status"] == "in_progress"
        with pytest.raises(ConflictError) as raised:
            await openai.conversations.items.create(conversation.id, items=[user("2")])
        assert int(raised.value.response.headers["retry-after"]) >= 1
        assert "x-should-retry" not in raised.value.response.headers
        await draft.feed(TextDelta(text=" see."))
    item = await openai.conversations.items.retrieve("msg_2", conversation_id=conversation.id)
    assert item.to_dict()["status"] == "completed"


async def test_text_that_is_no_unicode_comes_back(openai: AsyncOpenAI, client: Any) -> None:
    conversation = await openai.conversations.create()
    path = f"/v1/conversations/{conversation.id}/items"
    body = '{"items": [{"role": "user", "content": "half \\ud800 and \\u0000"}]}'
    made = await client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert made.json()["data"][0]["content"][0]["text"] == "half \ud800 and \x00"
    assert (await client.get(path)).json()["data"] == made.json()["data"]


async def test_concurrent_writers_keep_the_order_of_each_request(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create()

    async def write(writer: int) -> None:
        for round_ in range(5):
            items = [user(f"{writer} {round_} {number}") for number in range(3)]
            await openai.conversations.items.create(conversation.id, items=items)

    await asyncio.gather(*(write(writer) for writer in range(8)))
    found = await texts(openai, conversation.id, order="asc", limit=50)
    for writer in range(8):
        own = [text for text in found if text.startswith(f"{writer} ")]
        assert own == [f"{writer} {round_} {number}" for round_ in range(5) for number in range(3)]
    assert all(found[at].rsplit(" ", 1)[0] == found[at + 2].rsplit(" ", 1)[0] for at in range(0, 120, 3))
