"""An answer without `ledger.answers`: the loop that a service writes by hand, whose steps have keys and whose tools are
claimed. Its cost is what that of an answer is compared with.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from chatledger import ChatMessage, Ledger, Oldest

CLAIM = timedelta(minutes=1)


async def answer_by_hand(
    ledger: Ledger, thread_id: str, request_id: str, model: Callable[[Any], AsyncIterator[Any]]
) -> None:
    """Sent again with the same request, it replays what is stored."""
    asked = await ledger.messages.append(
        thread_id, ChatMessage.user("Tokyo?"), idempotency_key=f"{request_id}/question", create=True
    )
    run_id, after = f"{thread_id}/{request_id}", asked.message
    for step in count():
        key = f"{request_id}/{step}"
        async with ledger.messages.stream(
            thread_id,
            run_id=run_id,
            idempotency_key=f"{key}/0",
            format="openai-chat",
            branch=after.branch,
            reply_to=after,
            resume=True,
        ) as draft:
            if draft.message.state == "partial":
                prompt = await ledger.messages.prompt(thread_id, "openai-chat", branch=draft.message.branch)
                async for piece in model(prompt):
                    await draft.feed(piece)
        results = await _call_tools(ledger, thread_id, draft.message, f"{key}/results")
        if not results:
            await ledger.runs.finish(run_id, status="completed")
            return
        after = results[-1]


async def _call_tools(ledger: Ledger, thread_id: str, message: ChatMessage, key: str) -> list[ChatMessage]:
    calls, scope = message.tool_calls or [], ("thread", thread_id, "tools")
    if not calls:
        return []
    claim = await ledger.kv.get(scope, message.message_id or "")
    stored = await ledger.messages.history(thread_id, Oldest(len(calls), after=message.seq), branch=message.branch)
    if stored.messages:
        return list(stored.messages)
    until = {"until": (datetime.now(UTC) + CLAIM).isoformat()}
    await ledger.kv.put(scope, message.message_id or "", until, expected=claim.version if claim else 0)
    results = [
        ChatMessage(role="tool", tool_call_id=call.id, content=f"sunny in {json.loads(str(call.arguments))['city']}")
        for call in calls
    ]
    appended = await ledger.messages.append(
        thread_id, results, run_id=message.run_id, branch=message.branch, idempotency_key=key
    )
    return list(appended.messages)
