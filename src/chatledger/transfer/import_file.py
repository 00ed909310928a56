"""Import: one thread per record, stored completely or not at all.

Records are planned without the ledger. New threads are loaded in batches. If a thread of a batch exists already, the
import compares each record of the batch with its stored thread and writes only missing messages. So you can import the
same file any number of times, and the next import completes one that was killed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from pydantic import ValidationError

from chatledger.errors import (
    Conflict,
    DecodeError,
    Erased,
    FormatError,
    LimitExceeded,
    NotFound,
    RuleViolation,
    UnknownFormat,
)
from chatledger.ledger import Ledger
from chatledger.models import Thread, Violation
from chatledger.repositories import scope_of
from chatledger.storage.lists.thread_list import find_threads
from chatledger.transfer.envelope import from_metadata
from chatledger.transfer.fields import FieldMissing
from chatledger.transfer.new_threads import Loaded, NewThreads, find_stored
from chatledger.transfer.other_file import find_difference
from chatledger.transfer.plan import ImportOptions, PlannedThread, Planner
from chatledger.transfer.records import BadRecord, Record, read_records
from chatledger.transfer.report import FailedRecord, ImportReport, Outcome
from chatledger.transfer.shapes.requests import each_request
from chatledger.transfer.store_record import store_record

# Errors of a record. Any other error comes from the database and ends the import.
_OF_A_RECORD = (FormatError, RuleViolation, Conflict, LimitExceeded, NotFound, ValidationError)

_MOST_REFUSED = 1_000
"""Records without a conversation with which a file may begin. A list of empty objects has a million in 3 MiB."""


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
    """Import the records of a stream while reading it. Adds to `report`, or to a new one, and returns it.

    `file` is the name for reports and metadata. With `lines`, each line is a record. `on_bytes` is called with the
    number of bytes read. The import reports a bad record and continues, unless `stop_on_error` is set. It skips a
    record whose thread was erased, and lists it in the report's `erased`.

    Raises UnknownFormat before it stores anything of the file: for an unknown format name, for a file that matches no
    known format, and for a file in which no record, or none of the first 1,000, has a conversation in the expected
    field. It reads no further in a file without an id field whose first record differs from that of a file of the same
    name, and reports IdConflict. Raises StorageError if the database fails; the records reported until then are
    stored.
    """
    report = ImportReport() if report is None else report
    importing = _FileImport(ledger, options, file, report)
    try:
        outer = None
        for outer in read_records(stream, field=options.field, lines=lines):
            for record in each_request(outer):
                await importing.add(record)
                report.stopped = options.stop_on_error and importing.failed
                if report.stopped or importing.is_another:
                    break
            on_bytes(outer.end)
            if report.stopped or importing.is_another:
                break
        if outer is None:
            report.empty.append(file)
        await importing.finish()
    finally:
        await importing.abandon()
    return report


class _FileImport:
    def __init__(self, ledger: Ledger, options: ImportOptions, file: str, report: ImportReport) -> None:
        self._ledger = ledger
        self._options = options
        self._file = file
        self._report = report
        self._planner = Planner(options, file)
        self._new = NewThreads(ledger)
        # With either option, the import must know the outcome of a record before it reads the next one.
        self._one_by_one = options.dry_run or options.stop_on_error
        self._loading: asyncio.Task[Loaded] | None = None
        self._read_as: Counter[str] = Counter()
        self._located = False
        self.is_another = False
        """Whether a file of this name was imported before, and another one than this."""
        self._refused: list[FailedRecord] = []  # the records before the first one whose conversation is found

    @property
    def failed(self) -> bool:
        return bool(self._report.failures or self._refused)

    async def add(self, record: Record | BadRecord) -> None:
        try:
            planned = self._plan(record)
        except UnknownFormat as error:
            self._refuse(record, error)
            return
        except FieldMissing as error:
            self._refuse(record, DecodeError(error.path, error.detail, record=error.record, byte=error.byte))
            return
        except _OF_A_RECORD as error:
            if isinstance(record, Record):
                self._found()
            self._failed(record, error)
            return
        assert isinstance(record, Record)
        self._found()
        if not self._read_as and await self._is_of_another(record, planned):
            self.is_another = True
            return
        if not self._read_as and (other := self._planner.other_format(record)) is not None:
            self._report.looks_like[self._file] = other
        self._read_as[planned.envelope.format] += 1
        if self._one_by_one or not self._new.add(record, planned):
            await self.store_gathered()
            await self._store(record, planned, await find_stored(self._ledger, planned))
        elif self._new.full:
            await self._begin_to_store()
            if not self._ledger.has_server:  # the writer thread of SQLite and this one would only wait for each other
                await self._loaded()
        elif self._loading is not None:
            await asyncio.sleep(0)  # let the load continue

    async def finish(self) -> None:
        """Store the gathered records. Raises UnknownFormat if no record has a conversation in the expected field."""
        await self.store_gathered()
        if self._refused:
            raise self._unknown()
        if self._read_as:
            self._report.read_as.setdefault(self._file, Counter()).update(self._read_as)

    async def store_gathered(self) -> None:
        """Store and report all records added until now."""
        await self._begin_to_store()
        await self._loaded()

    async def _begin_to_store(self) -> None:
        """Load the gathered records in a task, while more are read and planned. One batch is loaded at a time."""
        await self._loaded()
        self._loading = asyncio.create_task(self._new.load())

    async def abandon(self) -> None:
        """Cancel a running load. Its batch may be stored or not, as if the process had died."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def _loaded(self) -> None:
        if self._loading is None:
            return
        gathered, stored = await self._loading
        self._loading = None
        for waiting in gathered:
            if stored is None:
                assert waiting.new is not None
                self._stored(waiting.planned, "created", waiting.planned.count, waiting.new.violations)
            else:
                await self._store(waiting.record, waiting.planned, stored)

    def _refuse(self, record: Record | BadRecord, error: UnknownFormat | DecodeError) -> None:
        """Refuse a file whose first record matches no known format; in a recording, refuse only that request. A record
        without a conversation is a bad record, unless no record of the file has one.
        """
        failure = FailedRecord(self._file, record.place, error)
        if isinstance(error, UnknownFormat) and not (isinstance(record, Record) and record.item is not None):
            raise UnknownFormat(None, str(failure)) from error
        (self._report.failures if self._located else self._refused).append(failure)
        if len(self._refused) >= _MOST_REFUSED:
            raise self._unknown()

    def _unknown(self) -> UnknownFormat:
        more = f" (and {len(self._refused) - 1:,} more)" if len(self._refused) > 1 else ""
        return UnknownFormat(None, f"{self._refused[0]}{more}")

    def _found(self) -> None:
        self._located = True
        self._report.failures += self._refused
        self._refused = []

    async def _is_of_another(self, record: Record, planned: PlannedThread) -> bool:
        """Whether the first record's place holds the record of another file. Also reports the first record if it is
        stored under another id. The whole file would then be stored twice.
        """
        others = self._planner.other_ids(record, planned)
        own = {planned.thread_id, planned.earlier_id}
        stored = await find_threads(scope_of(self._ledger), [*(id_ for id_ in own if id_ is not None), *others])
        if own.isdisjoint(stored):
            twins = [thread for thread in stored.values() if from_metadata(thread.metadata) is not None]
            if twins:
                self._report.twins[self._file] = twins[0].thread_id
            return False
        if planned.earlier_id is None or planned.earlier_id in stored:
            return False
        error = await find_difference(self._ledger, planned, self._options.source or self._file)
        if error is not None:
            self._failed(record, error)
        return error is not None

    def _plan(self, record: Record | BadRecord) -> PlannedThread:
        if isinstance(record, BadRecord):
            raise record.error
        try:
            return self._planner.plan(record)
        except DecodeError as error:
            raise type(error)(error.path, error.detail, record=record.index, byte=record.byte) from error

    async def _store(self, record: Record, planned: PlannedThread, stored: Mapping[str, Thread]) -> None:
        """Store the record in its thread, which an earlier release may have stored under another id."""
        try:
            if planned.earlier_id in stored:
                planned = self._planner.plan(record, planned.earlier_id)
            elif planned.earlier_id is not None and planned.thread_id not in stored:
                await self._refuse_erased(planned.earlier_id)
            thread = stored.get(planned.thread_id)
            outcome, messages = await store_record(self._ledger, planned, self._options, thread)
        except Erased as error:
            self._report.erased.append(FailedRecord(self._file, record.place, error))
        except _OF_A_RECORD as error:
            self._failed(record, error)
        else:
            violations = [violation for message in messages for violation in message.violations]
            self._stored(planned, outcome, len(messages), violations)

    async def _refuse_erased(self, thread_id: str) -> None:
        if await self._ledger.erasures.find(("thread", thread_id)) is not None:
            raise Erased(thread_id)

    def _stored(self, planned: PlannedThread, outcome: Outcome, messages: int, violations: Sequence[Violation]) -> None:
        self._report.add(outcome, messages, violations)
        self._report.losses.update(loss.code for loss in planned.losses)
        self._report.without_time += not planned.has_time

    def _failed(self, record: Record | BadRecord, error: Exception) -> None:
        self._report.failures.append(FailedRecord(self._file, record.place, error))
