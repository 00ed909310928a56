"""Store one record: compare it with the stored thread, and write only the missing messages.

One transaction writes the thread and its messages, so a record is stored completely or not at all. A long record is
appended in batches. The branches of a record keep their numbers. A thread may have more messages than its record, added
since the import.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from chatledger.errors import IdConflict, VersionConflict
from chatledger.ledger import Ledger, Transaction
from chatledger.models import ChatMessage, Limits, Oldest, Thread
from chatledger.models.json import same_json
from chatledger.repositories import scope_of
from chatledger.repositories.history import History, with_draft
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.rows.messages import bytes_of, encode_message, is_encoded_alike
from chatledger.transaction import as_user
from chatledger.transfer.attach import StoredMessages, Tail, attach
from chatledger.transfer.envelope import Envelope, from_metadata
from chatledger.transfer.plan import ImportOptions, PlannedThread
from chatledger.transfer.report import Outcome
from chatledger.transfer.shapes import BranchMessages, get_shape


async def store_record(
    ledger: Ledger, planned: PlannedThread, options: ImportOptions, thread: Thread | None
) -> tuple[Outcome, Sequence[ChatMessage]]:
    """Store a record. Returns the outcome for the thread and the stored messages. Raises the error of a bad record.

    `thread` is the stored thread with the planned id, or None if there is none.
    """
    if thread is None:
        try:
            tails = list(attach(planned.thread_id, planned.branches, StoredMessages()))
            return "created", await _write(ledger, planned, options, None, tails, planned.metadata)
        except IdConflict as error:
            if error.what != "thread":
                raise
            # A concurrent import stored it first: compare.
            thread = await ledger.threads.get(planned.thread_id)
    metadata = planned.metadata_over(_require_imported(thread))
    is_list = len(planned.branches) == 1 and not get_shape(planned.envelope.format).branching
    tails = await _following(ledger, planned) if is_list else await _new_replies(ledger, planned)
    if not tails and same_json(metadata, thread.metadata):
        return "unchanged", ()
    return "grown", await _write(ledger, planned, options, thread, tails, metadata)


def _require_imported(thread: Thread) -> Envelope:
    """Raises IdConflict for a thread that the application created. An import must not add to it."""
    imported = from_metadata(thread.metadata)
    if imported is None:
        raise IdConflict("thread", thread.thread_id, f"thread {thread.thread_id!r} exists already and was not imported")
    return imported[1]


async def _following(ledger: Ledger, planned: PlannedThread) -> list[Tail]:
    """The messages of the record that are not stored yet. Raises VersionConflict if the stored ones differ.

    A thread that continued after its import has more messages than the record: then nothing is missing.
    """
    thread_id, messages = planned.thread_id, planned.branches[0].messages
    history = await ledger.messages.history(thread_id, Oldest(len(messages)), branch=0)
    there = with_draft(history)
    for position, (stored, message) in enumerate(zip(there, messages, strict=False)):
        if not is_encoded_alike(stored, message):
            detail = f"message {position} of the record differs from the stored message"
            raise VersionConflict("branch", position, history.last_seq, detail, thread_id=thread_id, branch=0)
    rest = messages[len(there) :]
    return [Tail(rest)] if rest else []


async def _new_replies(ledger: Ledger, planned: PlannedThread) -> list[Tail]:
    stored = StoredMessages()
    for history in await _read_paths(ledger, planned.thread_id):
        stored.add(history)
    return list(attach(planned.thread_id, planned.branches, stored))


async def read_branches(ledger: Ledger, thread_id: str) -> list[BranchMessages]:
    """The messages of each branch of a thread that no earlier branch has. One query per branch."""
    branches: list[BranchMessages] = []
    paths: list[list[ChatMessage]] = []
    for history in await _read_paths(ledger, thread_id):
        messages = with_draft(history)
        shared = [_shared(path, messages) for path in paths]
        at = max(shared, default=0)
        branches.append(BranchMessages(messages[at:], shared.index(at) if shared else 0, at))
        paths.append(messages)
    return branches


async def _read_paths(ledger: Ledger, thread_id: str) -> list[History]:
    numbers = [branch.branch for branch in await ledger.branches.list(thread_id)]
    return [await ledger.messages.history(thread_id, branch=number) for number in numbers]


def _shared(left: Sequence[ChatMessage], right: Sequence[ChatMessage]) -> int:
    """The number of messages that two paths have in common."""
    pairs = enumerate(zip(left, right, strict=False))
    parting = (count for count, (first, other) in pairs if (first.branch, first.seq) != (other.branch, other.seq))
    return next(parting, min(len(left), len(right)))


async def _write(
    ledger: Ledger,
    planned: PlannedThread,
    options: ImportOptions,
    thread: Thread | None,
    tails: Sequence[Tail],
    metadata: dict[str, object],
) -> list[ChatMessage]:
    """Write the thread and its messages in one transaction, which a dry run rolls back."""
    stored: list[ChatMessage] = []
    async with written(ledger, dry_run=options.dry_run) as tx:
        if thread is None:
            await as_user(tx, planned.user_id).threads.create(
                planned.thread_id,
                metadata=metadata,
                created_at=planned.created_at,
            )
        elif not same_json(thread.metadata, metadata):
            await tx.threads.update(planned.thread_id, metadata=metadata)
        for tail in tails:
            stored += await _append(tx, planned.thread_id, tail, options)
    return stored


@asynccontextmanager
async def written(ledger: Ledger, *, dry_run: bool) -> AsyncIterator[Transaction]:
    """A transaction, which a dry run rolls back at its end."""
    try:
        async with ledger.begin() as tx:
            yield tx
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass


async def _append(tx: Transaction, thread_id: str, tail: Tail, options: ImportOptions) -> list[ChatMessage]:
    """Raises VersionConflict if another writer forked the thread meanwhile."""
    if tail.fork_at is not None:
        fork = await fork_at(scope_of(tx), thread_id, tail.fork_at.seq, branch=tail.fork_at.branch, activate=False)
        if fork.branch != tail.branch:
            detail = "another writer forked it meanwhile"
            raise VersionConflict("branch", 0, fork.branch, detail, thread_id=thread_id, branch=tail.branch)
    stored: list[ChatMessage] = []
    for batch in batches(tail.messages):
        appended = await tx.messages.append(thread_id, batch, branch=tail.branch, rules=options.rules)
        stored += appended.messages
    return stored


class _DryRun(Exception):
    """Leaves the transaction without committing it."""


def batches(messages: Sequence[ChatMessage], limits: Limits | None = None) -> Iterator[Sequence[ChatMessage]]:
    """Split the messages into batches within the limits of an append. A message that exceeds them by itself is a batch
    of its own, which the append refuses.
    """
    limits = limits or Limits()
    first = size = 0
    for index, message in enumerate(messages):
        own = bytes_of([encode_message(message)])
        if index > first and (index - first == limits.messages or size + own > limits.bytes):
            yield messages[first:index]
            first, size = index, 0
        size += own
    if messages[first:]:
        yield messages[first:]
