"""Conversations: created, changed, listed and deleted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError

from chatledger import ChatMessage, Ledger
from chatledger.repositories import scope_of
from chatledger.server import create_app
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.schema.tables import metadata as schema
from tests.conftest import Database
from tests.server.conftest import by_header
from tests.server.conversations.conftest import openai_of
from tests.storage.raw import query
from tests.storage.words import RING

HELLO: Any = {"role": "user", "content": "hello"}
FIRST: Any = {**HELLO, "id": "msg_1"}


async def test_a_conversation_is_created_read_changed_and_deleted(openai: AsyncOpenAI) -> None:
    made = await openai.conversations.create(items=[HELLO], metadata={"topic": "weather"})
    assert made.id.startswith("conv_")
    assert (made.object, made.metadata) == ("conversation", {"topic": "weather"})
    assert await openai.conversations.retrieve(made.id) == made
    changed = await openai.conversations.update(made.id, metadata={"place": "Tokyo"})
    assert (changed.metadata, changed.created_at) == ({"place": "Tokyo"}, made.created_at)
    assert (await openai.conversations.update(made.id, metadata=None)).metadata == {}
    deleted = await openai.conversations.delete(made.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (made.id, True, "conversation.deleted")
    for call in (openai.conversations.retrieve, openai.conversations.delete, openai.conversations.items.list):
        with pytest.raises(NotFoundError):
            await call(made.id)


async def test_a_conversation_without_anything_is_empty(openai: AsyncOpenAI) -> None:
    options: list[dict[str, Any]] = [{}, {"items": [], "metadata": {}}, {"items": None, "metadata": None}]
    for given in options:
        made = await openai.conversations.create(**given)
        assert made.metadata == {}
        page = await openai.conversations.items.list(made.id)
        assert (page.data, page.has_more, page.last_id) == ([], False, None)


async def test_metadata_may_be_as_large_as_openai_allows(openai: AsyncOpenAI) -> None:
    most = {f"{number:064}": "é" * 512 for number in range(16)}
    made = await openai.conversations.create(metadata=most)
    assert (await openai.conversations.retrieve(made.id)).metadata == most
    wrong: dict[str, Any] = {
        "metadata": {str(number): "" for number in range(17)},
        f"metadata.{'k' * 65}": {"k" * 65: ""},
        "metadata.k": {"k": "x" * 513},
    }
    for place, metadata in wrong.items():
        for call in (
            openai.conversations.create,
            lambda metadata: openai.conversations.update(made.id, metadata=metadata),
        ):
            with pytest.raises(BadRequestError) as raised:
                await call(metadata=metadata)
            assert str(raised.value.param).startswith(place)
    assert (await openai.conversations.retrieve(made.id)).metadata == most


@pytest.mark.parametrize("value", [1, None, True, ["a"], {"a": "b"}])
async def test_a_value_of_the_metadata_is_a_text(openai: AsyncOpenAI, value: Any) -> None:
    with pytest.raises(BadRequestError) as raised:
        await openai.conversations.create(metadata={"k": value})
    assert raised.value.param == "metadata.k"


async def test_a_wrong_item_leaves_no_conversation(openai: AsyncOpenAI, ledger: Ledger) -> None:
    wrong: list[Any] = [[HELLO, {"role": "user"}], [HELLO] * 21, [FIRST, FIRST]]
    for items in wrong:
        with pytest.raises(BadRequestError if items[-1] is not FIRST else ConflictError):
            await openai.conversations.create(items=items)
    assert await ledger.threads.count(archived=None) == 0


async def test_a_thread_of_another_kind_is_no_conversation(openai: AsyncOpenAI, ledger: Ledger) -> None:
    await ledger.threads.create("conv_other")
    await ledger.messages.append("conv_other", [ChatMessage(role="user", content="hello", message_id="m")])
    calls: list[Any] = [
        openai.conversations.retrieve("conv_other"),
        openai.conversations.update("conv_other", metadata={}),
        openai.conversations.delete("conv_other"),
        openai.conversations.items.list("conv_other"),
        openai.conversations.items.create("conv_other", items=[HELLO]),
        openai.conversations.items.retrieve("m", conversation_id="conv_other"),
        openai.conversations.items.delete("m", conversation_id="conv_other"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            await call
    assert (await ledger.threads.get("conv_other")).message_count == 1


async def test_the_other_api_reads_a_conversation_as_a_thread(openai: AsyncOpenAI, client: httpx.AsyncClient) -> None:
    made = await openai.conversations.create(items=[HELLO], metadata={"topic": "weather"})
    thread = (await client.get(f"/v1/threads/{made.id}")).json()
    assert (thread["kind"], thread["metadata"], thread["preview"]) == ("conversation", made.metadata, "hello")
    read = (await client.get(f"/v1/threads/{made.id}/messages", params={"format": "anthropic"})).json()
    assert read["payload"]["messages"][0]["role"] == "user"


async def test_conversations_are_listed_page_by_page(
    openai: AsyncOpenAI, client: httpx.AsyncClient, ledger: Ledger
) -> None:
    made = [(await openai.conversations.create(metadata={"n": str(number)})).id for number in range(5)]
    await ledger.threads.create("other")
    await ledger.threads.update(made[1], archived=True)
    for order, wanted in (("asc", made), ("desc", made[::-1])):
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = (await client.get("/v1/conversations", params={"limit": 2, "order": order, **after})).json()
            found += [one["id"] for one in page["data"]]
            assert (page["object"], page["first_id"], page["last_id"]) == ("list", found[-len(page["data"])], found[-1])
            if not page["has_more"]:
                break
            after = {"after": page["last_id"]}
        assert found == wanted
    assert (await client.get("/v1/conversations", params={"after": "nope"})).status_code == 404


async def test_the_id_of_a_conversation_tells_nothing_of_its_body(app: FastAPI, ledger: Ledger) -> None:
    """With the same key, and other words: the ids of the conversation and of its items are the same."""
    openai, key = openai_of(app, "ada"), {"Idempotency-Key": "k"}
    made = []
    for words in ("my PIN is 4711", "something else"):
        items: Any = [{**HELLO, "content": words}]
        one = await openai.conversations.create(items=items, metadata={"topic": words}, extra_headers=key)
        made.append((one.id, [item.id for item in (await openai.conversations.items.list(one.id)).data]))
        await ledger.threads.delete(one.id)
    assert made[0] == made[1]


async def test_another_body_with_the_key_of_a_conversation_is_a_conflict(openai: AsyncOpenAI, ledger: Ledger) -> None:
    key = {"Idempotency-Key": "k"}
    body: Any = {"items": [HELLO, {**HELLO, "content": "again"}], "metadata": {"topic": "weather"}}
    made = await openai.conversations.create(**body, extra_headers=key)
    others: list[Any] = [
        {**body, "items": [HELLO, {**HELLO, "content": "other"}]},
        {**body, "items": [FIRST, body["items"][1]]},
        {**body, "items": [*body["items"], HELLO]},
        {**body, "metadata": {"topic": "other"}},
        {"items": body["items"]},
    ]
    for other in others:
        with pytest.raises(ConflictError):
            await openai.conversations.create(**other, extra_headers=key)
    assert len((await openai.conversations.items.list(made.id)).data) == 2
    assert await openai.conversations.create(**body, extra_headers=key) == made


async def test_a_conversation_is_made_once_by_its_key_whatever_became_of_its_items(openai: AsyncOpenAI) -> None:
    key, more = {"Idempotency-Key": "k"}, {"Idempotency-Key": "k2"}
    items: Any = [HELLO, {**HELLO, "content": "again"}]
    made = await openai.conversations.create(items=items, extra_headers=key)
    await openai.conversations.items.create(made.id, items=[HELLO], extra_headers=more)
    for left in (2, 1):
        listed = (await openai.conversations.items.list(made.id, order="asc")).data
        await openai.conversations.items.delete(str(listed[0].id), conversation_id=made.id)
        assert await openai.conversations.create(items=items, extra_headers=key) == made
        assert len((await openai.conversations.items.list(made.id)).data) == left


async def revise(ledger: Ledger, conversation_id: str, message: ChatMessage) -> None:
    words = ChatMessage(role="user", content="revised")
    await ledger.messages.revise(conversation_id, message.message_id or "", words)


async def redact(ledger: Ledger, conversation_id: str, message: ChatMessage) -> None:
    await erase_at(scope_of(ledger), conversation_id, message.seq or 0)


async def retract(ledger: Ledger, conversation_id: str, message: ChatMessage) -> None:
    await ledger.messages.remove(conversation_id, message.message_id or "")


CHANGES = {
    "revised": [revise],
    "revised twice": [revise, revise],
    "redacted": [redact],
    "revised and redacted": [revise, redact],
    "removed": [retract],
    "revised and removed": [revise, retract],
    "redacted and removed": [redact, retract],
}


@pytest.mark.parametrize("keyed", [False, True], ids=["without keys", "with keys"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("changed", [0, 1])
async def test_a_repeat_is_known_after_an_item_was_changed(
    database: Database, changes: list[Any], changed: int, keyed: bool
) -> None:
    key = {"Idempotency-Key": "k"}
    items: list[Any] = [{**HELLO, "content": words} for words in ("one", "two")]
    async with database.open(encryption=RING if keyed else None) as ledger:
        openai = openai_of(create_app(ledger, authenticate=by_header))
        made = await openai.conversations.create(items=items, extra_headers=key)
        message = (await ledger.messages.history(made.id)).messages[changed]
        for change in changes:
            await change(ledger, made.id, message)
        before = await rows(database)
        assert await openai.conversations.create(items=items, extra_headers=key) == made
        others = [[*items, HELLO]]
        if retract not in changes:  # of a removed item, its id is what is compared
            others.append([{**HELLO, "content": "else"} if n == changed else items[n] for n in range(2)])
        for other in others:
            with pytest.raises(ConflictError):
                await openai.conversations.create(items=other, extra_headers=key)
        assert await rows(database) == before


async def test_a_repeat_of_an_erased_conversation_brings_nothing_back(openai: AsyncOpenAI, ledger: Ledger) -> None:
    key = {"Idempotency-Key": "k"}
    made = await openai.conversations.create(items=[HELLO], extra_headers=key)
    await ledger.erasures.erase(("thread", made.id))
    with pytest.raises(NotFoundError):
        await openai.conversations.create(items=[HELLO], extra_headers=key)
    assert await ledger.threads.count() == 0


async def test_a_user_has_only_their_own_conversations(app: FastAPI) -> None:
    ada, bob = openai_of(app, "ada"), openai_of(app, "bob")
    key = {"Idempotency-Key": "k"}
    of_ada = await ada.conversations.create(items=[FIRST], extra_headers=key)
    of_bob = await bob.conversations.create(items=[FIRST], extra_headers=key)
    assert of_ada.id != of_bob.id
    calls: list[Any] = [
        bob.conversations.retrieve(of_ada.id),
        bob.conversations.update(of_ada.id, metadata={"mine": "now"}),
        bob.conversations.delete(of_ada.id),
        bob.conversations.items.list(of_ada.id),
        bob.conversations.items.create(of_ada.id, items=[HELLO]),
        bob.conversations.items.retrieve("msg_1", conversation_id=of_ada.id),
        bob.conversations.items.delete("msg_1", conversation_id=of_ada.id),
        bob.get(f"/conversations?after={of_ada.id}", cast_to=object),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            await call
    assert await ada.conversations.retrieve(of_ada.id) == of_ada
    assert len((await ada.conversations.items.list(of_ada.id)).data) == 1
    listed: Any = await bob.get("/conversations", cast_to=object)
    assert [one["id"] for one in listed["data"]] == [of_bob.id]


async def test_a_deleted_conversation_leaves_no_row(openai: AsyncOpenAI, database: Database) -> None:
    """Also not one of a deleted item, of an update or of a call."""
    before = await rows(database)
    call: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    image: Any = {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]}
    made = await openai.conversations.create(items=[HELLO, call, image], metadata={"a": "b"})
    await openai.conversations.items.create(
        made.id, items=[{"type": "function_call_output", "call_id": "c", "output": "1"}, HELLO]
    )
    page = await openai.conversations.items.list(made.id)
    await openai.conversations.items.delete(str(page.last_id), conversation_id=made.id)
    await openai.conversations.update(made.id, metadata={"c": "d"})
    assert await rows(database) != before
    await openai.conversations.delete(made.id)
    assert await rows(database) == before


async def rows(database: Database) -> dict[str, int]:
    """The number of rows of each table."""
    counted = {
        table.name: await query(database, f"SELECT count(*) FROM {table.name}") for table in schema.tables.values()
    }
    return {name: found[0][0] for name, found in counted.items()}
