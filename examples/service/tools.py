"""Runs the tools that a message calls. A request claims the calls first, so that no other request runs them too."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import chatledger
from chatledger import ChatMessage, Ledger, Oldest
from chatledger.types import KvValue
from examples.service import model

CLAIM = timedelta(minutes=1)
"""How long a request may run tools. Longer than the slowest tool; a retry waits this long for a process that died."""


class ToolsRunning(chatledger.Conflict):
    """Another request runs the tools that a message calls."""

    def __init__(self, until: datetime) -> None:
        super().__init__("another request runs the tools of this answer; send the request again later")
        self.until = until

    @property
    def retry_after(self) -> int:
        return max(1, math.ceil((self.until - datetime.now(UTC)).total_seconds()))


async def answer_calls(ledger: Ledger, thread_id: str, message: ChatMessage, key: str) -> list[ChatMessage]:
    """The results of the tools that the message calls. The first request runs the tools and stores their results
    together, so a retry finds all results or none.
    """
    calls, branch = message.tool_calls or [], message.branch
    if not calls:
        return []
    claim = await claim_of(ledger, thread_id, message)  # before the results: they may be stored between the two reads
    stored = await ledger.messages.history(thread_id, Oldest(len(calls), after=message.seq), branch=branch)
    if stored.messages:
        return list(stored.messages)
    async with claimed(ledger, thread_id, message, claim):
        results = [
            ChatMessage(
                role="tool", tool_call_id=call.id, content=await model.weather(**json.loads(str(call.arguments)))
            )
            for call in calls
        ]
        appended = await ledger.messages.append(
            thread_id, results, run_id=message.run_id, branch=branch, idempotency_key=key
        )
    return list(appended.messages)


async def claim_of(ledger: Ledger, thread_id: str, message: ChatMessage) -> KvValue | None:
    return await ledger.kv.get(("thread", thread_id, "tools"), message.message_id or "")


@asynccontextmanager
async def claimed(ledger: Ledger, thread_id: str, message: ChatMessage, claim: KvValue | None) -> AsyncIterator[None]:
    """Only one request at a time answers the calls of a message. `claim` is the stored claim. Raises VersionConflict if
    another request was faster. A claim is never deleted, so that an outdated version stays a conflict.
    """
    scope, key, now = ("thread", thread_id, "tools"), message.message_id or "", datetime.now(UTC)
    until = datetime.fromisoformat(claim.value["until"]) if claim else now
    if until > now:
        raise ToolsRunning(until)
    value = {"until": (now + CLAIM).isoformat()}
    mine = await ledger.kv.put(scope, key, value, expected=claim.version if claim else 0)
    try:
        yield
    except BaseException:  # a client that disconnects too: a retry need not wait
        with suppress(chatledger.ChatLedgerError):
            await asyncio.shield(ledger.kv.put(scope, key, {"until": now.isoformat()}, expected=mine.version))
        raise
