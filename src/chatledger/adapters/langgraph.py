"""The messages of a graph of LangGraph, brought into a ledger.

    async for state in graph.astream(given, config, stream_mode="values"):
        await project(ledger, thread_id, state["messages"], run_id=run_id)

LangGraph keeps the state of a graph in checkpoints, which are pruned. The ledger keeps the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.adapters.langchain import decoded
from chatledger.adapters.write import settled
from chatledger.arguments import RULES, STR, STR_OR_NONE, require
from chatledger.ledger import Ledger
from chatledger.models import Appended, NewThread, RulesLevel

__all__ = ["project"]


async def project(
    ledger: Ledger,
    thread_id: str,
    messages: Sequence[Any],
    *,
    run_id: str | None = None,
    user_id: str | None = None,
    rules: RulesLevel = "lenient",
) -> Appended:
    """Store the whole channel `messages` of a graph in the thread. Call it after each step; the first call creates the
    thread.

        async for state in graph.astream(given, config, stream_mode="values"):
            await project(ledger, thread_id, state["messages"], run_id=run_id)

    Messages that follow the stored ones are appended, with the run `run_id`. If the graph removed or replaced a
    message, the messages from there on are stored on a new branch, which becomes the active one and shares the equal
    messages. The same messages again are `replayed`. Each call reads the active branch.

    With `user_id`, the thread belongs to that user. `rules` judges the messages; the default accepts every message.
    Raises DecodeError with the path of a value that is not JSON, ThreadNotFound for a thread of another user,
    LimitExceeded for more new messages than one append may have, VersionConflict if others kept writing to the thread,
    and the ledger's other errors.
    """
    require(STR, thread_id=thread_id)
    require(STR_OR_NONE, run_id=run_id, user_id=user_id)
    require(RULES, rules=rules)
    rows = decoded(messages)
    owned = ledger if user_id is None else ledger.user(user_id)

    new_thread = NewThread(rules=rules)
    return await settled(
        owned.messages.sync(thread_id, rows, create=new_thread, run_id=run_id, rules=rules, on_difference="branch")
    )
