"""Answers that outlive the request: what an agent gets, and what `ledger.answers` returns.

from chatledger.answers import Call, Turn

async def support(turn: Turn) -> None:
    while (message := await turn.ask(stream, format="openai-chat")).tool_calls:
        await turn.call_tools(run_tool)

async with ledger.answers.serve({"support": support}):
    answer = await ledger.answers.start(thread_id, "Where is my parcel?", idempotency_key=request_id)
"""

from __future__ import annotations

from chatledger.answers.tools import Call, Pending
from chatledger.answers.turn import Agent, Turn
from chatledger.repositories.answers import Answer

__all__ = ["Agent", "Answer", "Call", "Pending", "Turn"]
