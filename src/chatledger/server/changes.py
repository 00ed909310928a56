"""The changes of a thread for a stream: those that come, and how an answer ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from anyio import CancelScope

from chatledger.ledger import Ledger
from chatledger.models import ThreadChange
from chatledger.models.windows import Cursor
from chatledger.repositories.answers import Answer
from chatledger.server.state import State
from chatledger.server.watch import WaitOver, Watch, waiting_until

_IDLE = 2.0
"""Seconds without a change, after which the stream of an answer asks whether it has ended."""


async def until_ended(
    ledger: Ledger, answer: Answer, place: Cursor, following: AsyncGenerator[ThreadChange]
) -> AsyncGenerator[ThreadChange]:
    """The changes after the place, until the answer has ended. A follower tells how the newest runs of the active
    branch end. In a silence this asks whether the run has ended, which may be another one.
    """
    run_id = answer.run.run_id
    async with aclosing(following), aclosing(with_pauses(lambda: _anext(following), _IDLE)) as changes:
        async for change in changes:
            if change is not None:
                place = change.cursor
                yield change
                if change.kind == "run" and change.run_id == run_id and change.status not in ("running", "paused"):
                    return
            elif (await ledger.runs.get(run_id)).ended_at is not None:
                break
    async with aclosing(with_end(ledger, answer, place, answer.follow(cursor=place))) as rest:
        async for change in rest:
            yield change


async def with_end(
    ledger: Ledger, answer: Answer, place: Cursor, rest: AsyncGenerator[ThreadChange]
) -> AsyncGenerator[ThreadChange]:
    """The changes after the place, and how the run ended, which a follower of another branch does not tell."""
    run_id, has_ended = answer.run.run_id, False
    async with aclosing(rest):
        async for change in rest:
            place, has_ended = change.cursor, change.kind == "run" and change.run_id == run_id
            yield change
    if not has_ended:
        run, question = await ledger.runs.get(run_id), answer.question
        at = {"thread_id": run.thread_id, "branch": question.branch or 0, "seq": question.seq or 0}
        yield ThreadChange(kind="run", cursor=place, run_id=run_id, status=run.status, **at)


async def behind(first: ThreadChange | None, rest: AsyncGenerator[ThreadChange]) -> AsyncGenerator[ThreadChange]:
    if first is not None:
        yield first
    async for change in rest:
        yield change


async def _anext(changes: AsyncGenerator[ThreadChange]) -> ThreadChange | None:
    return await anext(changes, None)


async def with_pauses(
    following: Callable[[], Coroutine[Any, Any, ThreadChange | None]], seconds: float
) -> AsyncGenerator[ThreadChange | None, None]:
    """The changes, and None whenever there was none for so long."""
    while True:
        waiting = asyncio.create_task(following())
        try:
            while not (await asyncio.wait([waiting], timeout=seconds))[0]:
                yield None
        finally:
            waiting.cancel()
            with CancelScope(shield=True):  # what it waits for ends before the follower does
                await asyncio.wait([waiting])
        change = waiting.result()
        if change is None:
            return
        yield change


async def next_change(
    changes: AsyncGenerator[ThreadChange], state: State, watch: Watch, end: float
) -> ThreadChange | None:
    """The next change; None at the end, when the server drains or the time is over, or for another caller."""
    if watch.ended:  # a change that is read already comes without a wait
        return None
    try:
        async with waiting_until(end, state, watch):
            return await anext(changes, None)
    except WaitOver:
        return None
