"""Conversations: threads of one kind."""

from __future__ import annotations

import json

from chatledger.errors import AlreadyExists, ThreadNotFound
from chatledger.ids import derived_id, new_id
from chatledger.ledger import Ledger
from chatledger.models import Thread
from chatledger.server.access import Caller
from chatledger.server.conversations.bodies import NewConversation
from chatledger.server.conversations.items import to_messages

KIND = "conversation"
"""The kind of the threads that are conversations here."""


async def find_conversation(ledger: Ledger, conversation_id: str) -> Thread:
    """Raises ThreadNotFound, also for a thread of another kind."""
    thread = await ledger.threads.get(conversation_id)
    if thread.kind != KIND:
        raise ThreadNotFound(conversation_id)
    return thread


async def create_conversation(ledger: Ledger, caller: Caller, body: NewConversation, key: str | None) -> Thread:
    """Create a conversation with its first items, both or none. A repeat with the same idempotency key and the same
    body returns the conversation that it made. The rules are lenient, because a client may store a call alone.
    """
    conversation_id = _new_id(caller, body, key)
    messages = to_messages(body.items or [], *([] if key is None else [conversation_id]))
    try:
        async with ledger.begin() as transaction:
            thread = await transaction.threads.create(
                conversation_id, metadata=body.metadata, rules="lenient", kind=KIND
            )
            if messages:
                await transaction.messages.append(conversation_id, messages)
        return thread
    except AlreadyExists:
        return await find_conversation(ledger, conversation_id)


def _new_id(caller: Caller, body: NewConversation, key: str | None) -> str:
    if key is None:
        made = new_id()
    else:
        sent = json.dumps(body.model_dump(), sort_keys=True)
        made = derived_id("conversation", caller.user_id or "", key, sent)
    return f"conv_{made.replace('-', '')}"
