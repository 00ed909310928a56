"""The routes of the OpenAI Conversations API. The list of conversations is an extension: OpenAI has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Query

from chatledger.errors import InvalidArgument
from chatledger.models.weight import apart
from chatledger.server.answers.headers import IdempotencyKey
from chatledger.server.conversations.bodies import (
    ConversationList,
    ConversationResource,
    ConversationUpdate,
    DeletedConversation,
    ErrorBody,
    ItemList,
    NewConversation,
    NewItems,
)
from chatledger.server.conversations.conversations import KIND, create_conversation, find_conversation
from chatledger.server.conversations.item_pages import find_item, read_page
from chatledger.server.conversations.items import ConversationItem, items_of_all, refuse_all_but_user_items, to_messages
from chatledger.server.json_route import json_router
from chatledger.server.paths import PathId
from chatledger.server.state import Asking, Mine, Who
from chatledger.storage.lists.thread_list import cursor_behind

router = json_router(
    prefix="/conversations",
    tags=["OpenAI conversations"],
    responses={"default": {"model": ErrorBody, "description": "An error of OpenAI."}},
)

Includable = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]
ConversationId = Annotated[PathId, Path(description="The id of the conversation, percent-encoded.")]
ItemId = Annotated[PathId, Path(description="The id of the item, percent-encoded.")]
After = Annotated[str | None, Query(description="The page starts after the element with this id.")]
PageSize = Annotated[int, Query(ge=1, le=100, description="The most elements to return, 1 to 100.")]
Order = Annotated[Literal["asc", "desc"], Query(description="Oldest first, or newest first.")]
Include = Annotated[
    list[Includable] | None, Query(alias="include[]", description="Accepted, and not needed: items come back whole.")
]


@router.get("")
async def list_conversations(
    ledger: Mine, after: After = None, limit: PageSize = 20, order: Order = "desc"
) -> ConversationList:
    """List conversations by their creation, archived ones too."""
    newest_first = order == "desc"
    cursor = None
    if after is not None:
        cursor = cursor_behind(await ledger.threads.get(after), newest_first=newest_first)
    page = await ledger.threads.list(
        kind=KIND, archived=None, order="created", newest_first=newest_first, limit=limit, cursor=cursor
    )
    data = [ConversationResource.of(thread) for thread in page.items]
    return ConversationList(
        data=data, has_more=page.next_cursor is not None, **_ends([conversation.id for conversation in data])
    )


@router.post("", operation_id="create_conversation")
async def create(ledger: Asking, caller: Who, body: NewConversation, key: IdempotencyKey) -> ConversationResource:
    """Create a conversation, with up to 20 items."""
    return ConversationResource.of(await create_conversation(ledger, caller, body, key))


@router.get("/{conversation_id}")
async def retrieve_conversation(ledger: Mine, conversation_id: ConversationId) -> ConversationResource:
    """Read a conversation without its items."""
    return ConversationResource.of(await find_conversation(ledger, conversation_id))


@router.post("/{conversation_id}")
async def update_conversation(
    ledger: Mine, conversation_id: ConversationId, body: ConversationUpdate
) -> ConversationResource:
    """Replace the metadata."""
    await find_conversation(ledger, conversation_id)
    return ConversationResource.of(await ledger.threads.update(conversation_id, metadata=body.metadata))


@router.delete("/{conversation_id}")
async def delete_conversation(ledger: Mine, conversation_id: ConversationId) -> DeletedConversation:
    """Delete a conversation for good, with its items."""
    await find_conversation(ledger, conversation_id)
    await ledger.threads.delete(conversation_id)
    return DeletedConversation(id=conversation_id)


@router.get("/{conversation_id}/items", response_model=ItemList)
async def list_items(
    ledger: Mine,
    conversation_id: ConversationId,
    after: After = None,
    limit: PageSize = 20,
    order: Order = "desc",
    include: Include = None,
) -> dict[str, Any]:
    """List the items in the exact order in which they were stored, or in its reverse."""
    await find_conversation(ledger, conversation_id)
    page = await read_page(ledger, conversation_id, after=after, limit=limit, newest_first=order == "desc")
    return _item_list(page.items, has_more=page.has_more)


@router.post("/{conversation_id}/items", response_model=ItemList)
async def create_items(
    ledger: Asking,
    caller: Who,
    conversation_id: ConversationId,
    body: NewItems,
    key: IdempotencyKey,
    include: Include = None,
) -> dict[str, Any]:
    """Append up to 20 items, all or none. The same items again, with their ids or the same key, are a repeat: they are
    returned, and not stored twice.
    """
    await find_conversation(ledger, conversation_id)
    place = [] if key is None else [conversation_id, key]
    messages = await apart(lambda: to_messages(body.items, *place), body.items)
    refuse_all_but_user_items(caller, body.items, messages)
    appended = await ledger.messages.append(conversation_id, messages)
    return _item_list(await items_of_all(appended.messages), has_more=False)


@router.get("/{conversation_id}/items/{item_id}", response_model=dict[str, Any])
async def retrieve_item(
    ledger: Mine, conversation_id: ConversationId, item_id: ItemId, include: Include = None
) -> dict[str, Any]:
    """Read an item of the conversation."""
    await find_conversation(ledger, conversation_id)
    return (await find_item(ledger, conversation_id, item_id)).to_json()


@router.delete("/{conversation_id}/items/{item_id}")
async def delete_item(ledger: Mine, conversation_id: ConversationId, item_id: ItemId) -> ConversationResource:
    """Delete an item for good, and return its conversation. Only its position stays, without words."""
    thread = await find_conversation(ledger, conversation_id)
    message = (await find_item(ledger, conversation_id, item_id)).message
    if len(await items_of_all([message])) > 1:
        raise InvalidArgument("item_id", "is one of several items of a message; delete that message through its thread")
    assert message.message_id is not None
    async with ledger.begin() as transaction:
        await transaction.messages.erase(conversation_id, message)
        await transaction.messages.remove(conversation_id, message.message_id)
    return ConversationResource.of(thread)


def _item_list(items: Sequence[ConversationItem], *, has_more: bool) -> dict[str, Any]:
    data = [item.to_json() for item in items]
    return {"object": "list", "data": data, "has_more": has_more, **_ends([item.id for item in items])}


def _ends(ids: Sequence[str]) -> dict[str, Any]:
    return {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
