"""Storing one record: compared with what is there under its ids, and only what is missing is written.

The thread and its messages are one transaction, so a record is stored whole or not at all; a long one is appended in
pieces. A record of several lines is stored as branches of the same numbers. A thread may have gone on since it was
imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chatledger.errors import AlreadyExists, VersionConflict
from chatledger.ledger import Ledger, Transaction
from chatledger.models import ChatMessage, Limits, Thread
from chatledger.models.json import same_json
from chatledger.storage.rows import encode_message
from chatledger.transfer.envelope import Envelope, from_metadata
from chatledger.transfer.planning import ImportOptions, PlannedThread
from chatledger.transfer.report import Outcome
from chatledger.transfer.shapes import Line


async def store_record(
    ledger: Ledger, planned: PlannedThread, options: ImportOptions, thread: Thread | None
) -> tuple[Outcome, Sequence[ChatMessage]]:
    """What became of the thread, and the messages that were stored. Raises what keeps the record out.

    `thread` is what is stored under its id, as far as is known.
    """
    if thread is None:
        try:
            return "created", await _write(ledger, planned, options, None, planned.lines, planned.metadata)
        except AlreadyExists:  # another import of this record was faster: what it stored is compared
            thread = await ledger.threads.get(planned.thread_id)
    metadata = planned.metadata_over(_require_imported(thread))
    rest = await _following(ledger, planned)
    if not any(line.messages for line in rest) and same_json(metadata, thread.metadata):
        return "unchanged", []
    return "grown", await _write(ledger, planned, options, thread, rest, metadata)


def _require_imported(thread: Thread) -> Envelope:
    """A thread that the application made is not an import's to continue."""
    imported = from_metadata(thread.metadata)
    if imported is None:
        raise AlreadyExists(thread.thread_id, f"thread {thread.thread_id!r} exists already and was not imported")
    return imported[1]


async def _following(ledger: Ledger, planned: PlannedThread) -> list[Line]:
    """What of the record's lines is not stored yet. Raises VersionConflict where the two differ.

    A thread that went on after it was imported holds more than the record: then nothing follows.
    """
    one = len(planned.lines) == 1
    stored = {0} if one else {branch.branch for branch in await ledger.branches.list(planned.thread_id)}
    rest = []
    for number, line in enumerate(planned.lines):
        new = await _following_on(ledger, planned.thread_id, number, line) if number in stored else line.messages
        rest.append(replace(line, messages=new))
    return rest


async def _following_on(ledger: Ledger, thread_id: str, branch: int, line: Line) -> list[ChatMessage]:
    after = line.at or None
    history = await ledger.messages.history(thread_id, branch=branch, limit=len(line.messages), after=after)
    for place, (stored, given) in enumerate(zip(history.messages, line.messages, strict=False), line.at):
        if encode_message(stored) != encode_message(given):
            detail = f"message {place} of the record is not what is stored there"
            raise VersionConflict(thread_id, branch, place, history.version, detail)
    return line.messages[len(history) :]


async def _write(
    ledger: Ledger,
    planned: PlannedThread,
    options: ImportOptions,
    thread: Thread | None,
    lines: Sequence[Line],
    metadata: dict[str, object],
) -> list[ChatMessage]:
    """The thread and its messages in one transaction, which a dry run rolls back."""
    stored: list[ChatMessage] = []
    try:
        async with ledger.begin() as tx:
            if thread is None:
                await tx.threads.create(
                    planned.thread_id,
                    user_id=planned.user_id,
                    metadata=metadata,
                    created_at=planned.created_at,
                )
            elif not same_json(thread.metadata, metadata):
                await tx.threads.update(planned.thread_id, metadata=metadata)
            for number, line in enumerate(lines):
                stored += await _append(tx, planned.thread_id, number, line, options)
            if options.dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return stored


async def _append(
    tx: Transaction, thread_id: str, number: int, line: Line, options: ImportOptions
) -> list[ChatMessage]:
    """The line's messages on the branch of its number, which is made if it is the next one."""
    if not line.messages:
        return []
    if number and number > (await tx.branches.list(thread_id))[-1].branch:
        await tx.branches.fork(thread_id, line.at, branch=line.parent, activate=False)
    stored: list[ChatMessage] = []
    for batch in batches(line.messages):
        appended = await tx.messages.append(thread_id, batch, branch=number, rules=options.rules)
        stored += appended.messages
    return stored


class _DryRun(Exception):
    """Leaves the transaction without committing it."""


def batches(messages: Sequence[ChatMessage], limits: Limits | None = None) -> Iterator[Sequence[ChatMessage]]:
    """The messages in pieces that an append takes. One that is too large alone is left for the append to refuse."""
    limits = limits or Limits()
    first = size = 0
    for index, message in enumerate(messages):
        own = encode_message(message).bytes
        if index > first and (index - first == limits.messages or size + own > limits.bytes):
            yield messages[first:index]
            first, size = index, 0
        size += own
    if messages[first:]:
        yield messages[first:]
