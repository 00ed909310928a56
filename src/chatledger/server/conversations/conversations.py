"""Conversations: threads of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.errors import IdConflict, MessageNotFound, ThreadNotFound, VersionConflict
from chatledger.ids import derived_id, new_id
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Mark, Oldest, Thread
from chatledger.models.weight import apart
from chatledger.server.callers.access import Caller
from chatledger.server.conversations.bodies import NewConversation
from chatledger.server.conversations.items import items_of, refuse_all_but_user_items, to_messages

KIND = "conversation"
"""The kind of the threads that are conversations here."""
_REMEDY = "use another idempotency key for another conversation"


async def find_conversation(ledger: Ledger, conversation_id: str) -> Thread:
    """Raises ThreadNotFound, also for a thread of another kind."""
    thread = await ledger.threads.get(conversation_id)
    if thread.kind != KIND:
        raise ThreadNotFound(conversation_id)
    return thread


async def create_conversation(ledger: Ledger, caller: Caller, body: NewConversation, key: str | None) -> Thread:
    """Create a conversation with its first items, both or none. A repeat with the same idempotency key and the same
    body returns the conversation that it made. The rules are lenient, because a client may store a call alone.

    Raises IdConflict if the conversation of the key began with another body.
    """
    conversation_id = _new_id(caller, key)
    place = [] if key is None else [conversation_id]
    messages = await apart(lambda: to_messages(body.items or [], *place), body.items)
    refuse_all_but_user_items(caller, body.items or [], messages)
    try:
        async with ledger.begin() as transaction:
            thread = await transaction.threads.create(
                conversation_id, metadata=body.metadata, rules="lenient", kind=KIND
            )
            if messages:
                await transaction.messages.append(conversation_id, messages)
        return thread
    except IdConflict as error:
        if error.what != "thread":
            raise
        return await _find_same(ledger, conversation_id, body, messages)


def _new_id(caller: Caller, key: str | None) -> str:
    """The id of a conversation. It never contains anything of the body, which a reader of the id could guess."""
    id_ = new_id() if key is None else derived_id("conversation by key", caller.user_id or "", key)
    return f"conv_{id_.replace('-', '')}"


async def _find_same(
    ledger: Ledger, conversation_id: str, body: NewConversation, messages: Sequence[ChatMessage]
) -> Thread:
    """The conversation of the key, if the body is the one that made it, as far as the stored items still tell."""
    thread = await find_conversation(ledger, conversation_id)
    if (thread.metadata or {}) != (body.metadata or {}):
        raise IdConflict("thread", conversation_id, f"conversation {conversation_id!r} has other metadata; {_REMEDY}")
    if messages:
        await _refuse_others(ledger, conversation_id, messages)
    return thread


async def _refuse_others(ledger: Ledger, conversation_id: str, messages: Sequence[ChatMessage]) -> None:
    """The first items stand, or stood, at the first positions. Raises IdConflict for another item at one of them."""
    stored = await ledger.messages.history(conversation_id, Oldest(len(messages)), branch=0)
    there = {message.seq: message for message in stored.messages}
    for seq, sent in enumerate(messages, start=1):
        stored_there = there.get(seq)
        if stored_there is None:
            same = await _was_removed(ledger, conversation_id, sent.message_id or "")
        else:
            same = stored_there.message_id == sent.message_id and await _was_same(
                ledger, stored_there, sent, stored.mark
            )
        if not same:
            taken = sent.message_id or ""
            detail = f"id {taken!r}: is not what the key's first request stored; {_REMEDY}"
            raise IdConflict("message", taken, detail, seq=seq)


async def _was_removed(ledger: Ledger, conversation_id: str, message_id: str) -> bool:
    """Whether a message with that id stood there once. A change of another message takes a position too."""
    try:
        return bool(await ledger.messages.revisions(conversation_id, message_id, limit=1))
    except MessageNotFound:
        return False


async def _was_same(ledger: Ledger, stored: ChatMessage, sent: ChatMessage, mark: Mark) -> bool:
    """Whether the stored message is the given one, or was before it was revised or redacted: then a repeat of its
    append is known. The mark lets nothing be stored if the message was removed meanwhile.
    """
    if await apart(lambda: _sources(stored) == _sources(sent), stored):
        return True
    try:
        again = await ledger.messages.append(stored.thread_id or "", [sent], branch=0, expected=mark, rules="lenient")
    except (IdConflict, VersionConflict):
        return False
    return again.replayed


def _sources(message: ChatMessage) -> list[dict[str, Any]]:
    return [item.source for item in items_of(message)]
