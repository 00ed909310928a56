"""How every adapter writes: threads are created at first use, several calls are one transaction, and a cancelled caller
gets its CancelledError only after its write has ended.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import count
from typing import Any, Literal, TypeVar

from chatledger.errors import LimitExceeded, StorageError, VersionConflict
from chatledger.ledger import Ledger
from chatledger.models import Appended, ChatMessage, Mark, NewThread, RulesLevel
from chatledger.transaction import Transaction

T = TypeVar("T")
ATTEMPTS = 8
_PAUSE = 0.005
"""Maximum number of seconds before the second attempt; twice as long before each further one."""


async def settled(write: Coroutine[Any, Any, T]) -> T:
    """Run the write to its end and return its result. A caller that is cancelled meanwhile waits for the end, and then
    gets its CancelledError.
    """
    task = asyncio.ensure_future(write)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is None:
        return task.result()
    failure = None if task.cancelled() else task.exception()
    raise cancelled from failure


async def in_transaction(ledger: Ledger, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Run `work` in a transaction, and run it again if another writer came first or the database failed. `work` may run
    several times, so it must keep no state between them.

    A caller that must learn of the other writer begins the transaction itself.
    """
    for attempt in count(1):
        try:
            async with ledger.begin() as transaction:
                return await work(transaction)
        except VersionConflict:
            if attempt == ATTEMPTS:
                raise
        except StorageError as error:
            if attempt == ATTEMPTS or not error.retryable:
                raise
        await asyncio.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311 - it keeps no secret
    raise AssertionError("unreachable")


async def append(
    ledger: Ledger,
    thread_id: str,
    messages: Sequence[ChatMessage],
    *,
    rules: RulesLevel,
    expected: Mark | Literal[0] | None = None,
) -> Appended:
    """Append any number of messages, all or none, and create the thread with these rules if it does not exist. Returns
    the result of the last piece.

    It is one call of the ledger, or one transaction if there are more messages than a call may have. Raises as
    `messages.append`; a thread of another user is a ThreadNotFound. A VersionConflict with what is expected is raised
    at once.
    """
    try:
        return await ledger.messages.append(
            thread_id, messages, rules=rules, expected=expected, create=NewThread(rules=rules)
        )
    except LimitExceeded as error:
        if not _are_too_many(messages, error):
            raise

    async def write(transaction: Transaction) -> Appended:
        return await append_within(
            transaction,
            thread_id,
            messages,
            rules=rules,
            expected=expected,
            create=True,
        )

    if expected is None:
        return await in_transaction(ledger, write)
    async with ledger.begin() as transaction:
        return await write(transaction)


async def append_within(
    transaction: Transaction,
    thread_id: str,
    messages: Sequence[ChatMessage],
    *,
    rules: RulesLevel,
    expected: Mark | Literal[0] | None = None,
    create: bool = False,
) -> Appended:
    """`messages.append` of a transaction, in pieces if there are more messages than one append may have. `expected`
    is compared before the first piece.
    """

    async def first(piece: Sequence[ChatMessage]) -> Appended:
        new_thread = NewThread(rules=rules) if create else False
        return await transaction.messages.append(thread_id, piece, rules=rules, expected=expected, create=new_thread)

    try:
        return await first(messages)
    except LimitExceeded as error:
        if not _are_too_many(messages, error):
            raise
        size = error.maximum
    appended = await first(messages[:size])
    for start in range(size, len(messages), size):
        appended = await transaction.messages.append(thread_id, messages[start : start + size], rules=rules)
    return appended


def _are_too_many(messages: Sequence[ChatMessage], error: LimitExceeded) -> bool:
    """Whether the error is about the number of messages, and not about their bytes."""
    return error.given == len(messages) > error.maximum
