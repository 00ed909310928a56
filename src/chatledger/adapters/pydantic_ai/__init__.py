"""The conversations of Pydantic AI, kept in a ledger.

    store = LedgerConversationStore(ledger)
    conversation = await store.load("c1", scope="ada") or Conversation(conversation_id="c1")
    await store.save(await agent.run("Hello", conversation=conversation), scope="ada")

A conversation is a thread of its scope's user. An entry is one message, or one for each part of a request, in the
format `pydantic-ai`. The record is a value of the thread in `ledger.kv`. It names the last entry of the history, with
which the active branch ends.
"""

from chatledger.adapters.pydantic_ai.path import EntryNotFound
from chatledger.adapters.pydantic_ai.store import LedgerConversationStore

__all__ = ["EntryNotFound", "LedgerConversationStore"]
