"""Import: one thread for each record, stored whole or not at all.

What a record will be is planned without the ledger, then compared with what is stored under its ids: nothing, its
beginning, or all of it. Only what is missing is written, so the same file may be imported any number of times, a
thread may have gone on since, and an import that was killed is finished by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from pydantic import ValidationError

from chatledger.errors import (
    AlreadyExists,
    Conflict,
    DecodeError,
    FormatError,
    LimitExceeded,
    NotFound,
    RuleViolation,
    VersionConflict,
)
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Limits, Thread
from chatledger.models.json import same_json
from chatledger.storage.rows import encode_message
from chatledger.transfer.envelope import Envelope, from_metadata
from chatledger.transfer.planning import ImportOptions, PlannedThread, Planner
from chatledger.transfer.records import BadRecord, Record, read_records
from chatledger.transfer.report import Failure, ImportReport, Outcome

# What is wrong with a record. Anything else is wrong with the database, and ends the import.
_OF_A_RECORD = (FormatError, RuleViolation, Conflict, LimitExceeded, NotFound, ValidationError)


async def import_file(
    ledger: Ledger,
    stream: BinaryIO,
    options: ImportOptions,
    *,
    file: str,
    lines: bool = False,
    report: ImportReport | None = None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> ImportReport:
    """Import the records of a stream as they are read, and add to the report (a new one if none is given).

    `file` is what it is called in reports and metadata; `lines`: each line is a record. `on_bytes` hears how far the
    reading has come. A bad record is reported and the rest goes in, unless `stop_on_error`. Raises UnknownFormat, and
    StorageError when the database fails: what was reported until then is stored.
    """
    report = ImportReport() if report is None else report
    planner = Planner(options, file)
    for record in read_records(stream, field=options.field, lines=lines):
        try:
            await _import_record(ledger, _readable(record), planner, options, report)
        except _OF_A_RECORD as error:
            report.failures.append(Failure(file, record.place, error))
            if options.stop_on_error:
                report.stopped = True
                break
        on_bytes(record.end)
    return report


def _readable(record: Record | BadRecord) -> Record:
    if isinstance(record, BadRecord):
        raise record.error
    return record


async def _import_record(
    ledger: Ledger, record: Record, planner: Planner, options: ImportOptions, report: ImportReport
) -> None:
    try:
        planned = planner.plan(record)
    except DecodeError as error:
        raise DecodeError(error.path, error.detail, record=record.index, byte=record.byte) from error
    outcome, stored = await _store(ledger, planned, options)
    report.add(outcome, stored)
    report.losses.update(loss.code for loss in planned.losses)
    report.without_time += not planned.has_time


async def _store(
    ledger: Ledger, planned: PlannedThread, options: ImportOptions
) -> tuple[Outcome, Sequence[ChatMessage]]:
    thread = await ledger.threads.find(planned.thread_id)
    if thread is None:
        try:
            return "created", await _write(ledger, planned, options, thread, planned.messages, planned.metadata)
        except AlreadyExists:  # another import of this record was faster: what it stored is compared
            thread = await ledger.threads.get(planned.thread_id)
    metadata = planned.metadata_over(_require_imported(thread))
    rest = await _following(ledger, planned)
    if not rest and same_json(metadata, thread.metadata):
        return "unchanged", ()
    return "grown", await _write(ledger, planned, options, thread, rest, metadata)


def _require_imported(thread: Thread) -> Envelope:
    """A thread that the application made is not an import's to continue."""
    imported = from_metadata(thread.metadata)
    if imported is None:
        raise AlreadyExists(thread.thread_id, f"thread {thread.thread_id!r} exists already and was not imported")
    return imported[1]


async def _following(ledger: Ledger, planned: PlannedThread) -> list[ChatMessage]:
    """What of the record is not stored yet. Raises VersionConflict where the two differ.

    A thread that went on after it was imported holds more than the record: then nothing follows.
    """
    thread_id, messages = planned.thread_id, planned.messages
    history = await ledger.messages.history(thread_id, branch=0, limit=len(messages))
    for position, (stored, given) in enumerate(zip(history.messages, messages, strict=False)):
        if encode_message(stored) != encode_message(given):
            detail = f"message {position} of the record is not what is stored there"
            raise VersionConflict(thread_id, 0, position, history.version, detail)
    return messages[len(history) :]


async def _write(
    ledger: Ledger,
    planned: PlannedThread,
    options: ImportOptions,
    thread: Thread | None,
    messages: Sequence[ChatMessage],
    metadata: dict[str, object],
) -> Sequence[ChatMessage]:
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
            for batch in batches(messages):
                appended = await tx.messages.append(planned.thread_id, batch, branch=0, rules=options.rules)
                stored += appended.messages
            if options.dry_run:
                raise _DryRun
    except _DryRun:
        pass
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
