"""The conversations of Pydantic AI, kept in a ledger.

    store = LedgerConversationStore(ledger)
    conversation = await store.load("c1", scope="ada") or Conversation(conversation_id="c1")
    await store.save(await agent.run("Hello", conversation=conversation), scope="ada")

A conversation is a thread of its scope's user. An entry is one message, or one for each part of a request, in the
format `pydantic-ai`. The record is a value of the thread in `ledger.kv`. It names the last entry of the history, with
which the active branch ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from chatledger.adapters.extra import importing
from chatledger.adapters.write import append_within, in_transaction, settled
from chatledger.arguments import RULES, Kind, require
from chatledger.errors import (
    AlreadyExists,
    DecodeError,
    EncodeError,
    IdConflict,
    KvConflict,
    LimitExceeded,
    NotFound,
    RunConflict,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.formats.pydantic_ai.codec import CODEC
from chatledger.formats.pydantic_ai.foreign import fit
from chatledger.formats.pydantic_ai.names import NAME, request_head
from chatledger.formats.pydantic_ai.write import Writer
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, RulesLevel, continues
from chatledger.models.json import JsonValue, dumps
from chatledger.models.limits import MAX_KEY_BYTES
from chatledger.models.trusted import copy_with
from chatledger.repositories import Repositories
from chatledger.transaction import Transaction

with importing("pydantic_ai", extra="pydantic-ai", name="Pydantic AI"):
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )

__all__ = ["EntryNotFound", "LedgerConversationStore"]

_LEDGER = Kind("a Ledger", Ledger)
_LOGGER = logging.getLogger("chatledger.adapters")
_RECORD = TypeAdapter(ConversationRecord)
_KIND = "pydantic-ai"
"""The kind of the threads, by which they are listed."""
_KEY = "pydantic-ai/record"
"""The key of the record, among the values of the thread."""
_PAGE = 1_000
_ROWS = 50
"""Rows that are read at a time to find the last one of an entry."""
_AT_ONCE = 16
"""Threads whose records are read at the same time."""
_CONFLICTS = (AlreadyExists, IdConflict, KvConflict, NotFound, VersionConflict)


class EntryNotFound(NotFound, LookupError):
    """No conversation has an entry with that id, or it was deleted."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"there is no entry {entry_id!r}")
        self.entry_id = entry_id


class LedgerConversationStore(ConversationStore):  # type: ignore[misc]  # the type checker does not have Pydantic AI
    """Pydantic AI's store of conversations on a ledger, which is the whole tenant's. A conversation that is saved with
    a `scope` is the thread of that user.

    Each save is one transaction: it stores the new entries and the record, or raises ConversationConflict and stores
    nothing. To delete a conversation deletes its messages for good; a fork has copies of its own.

    `rules` is the level of the threads that the store makes, and of what it adds. Pydantic AI repairs a history when it
    sends it, so the default keeps whatever comes.
    """

    def __init__(self, ledger: Ledger, *, rules: RulesLevel = "lenient") -> None:
        require(_LEDGER, ledger=ledger)
        require(RULES, rules=rules)
        self._ledger = ledger
        self._rules = rules

    # --- Records ------------------------------------------------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        stored = await _read_stored(self._ledger, conversation_id)
        return None if stored is None else stored.record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> list[ConversationRecord]:
        """The records, those that were saved last first. It reads each record, 16 at a time, whatever the limit is."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def read(conversation_id: str) -> ConversationRecord | None:
            async with gate:
                return await self.read_record(conversation_id)

        found = await asyncio.gather(*[read(one) for one in await self._conversation_ids(scope)])
        records = [record for record in found if record is not None]
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def _conversation_ids(self, scope: str | None) -> list[str]:
        ids: list[str] = []
        cursor = None
        while True:
            page = await self._ledger.threads.list(
                user_id=scope,
                kind=_KIND,
                archived=None,
                order="created",
                newest_first=False,
                limit=_PAGE,
                cursor=cursor,
            )
            ids += [thread.thread_id for thread in page]
            if (cursor := page.next_cursor) is None:
                return ids

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store the record and the entries, all or nothing.

        Raises ConversationConflict if the stored record has another revision or another scope, if a thread with that id
        is no conversation, and if the head or the parent of an entry is nowhere; DecodeError for a value that has no
        JSON, with its path; and the ledger's other errors.
        """
        write = _Write.of(record, new_entries)
        try:
            await settled(self._write(write, expected_revision))
        except _CONFLICTS as error:
            raise ConversationConflict(record.conversation_id) from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete the thread with its messages, runs and feedback, for good."""

        async def delete(transaction: Transaction) -> None:
            stored = await _hold(transaction, conversation_id)
            if stored is None or stored.record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            await transaction.threads.delete(conversation_id)

        try:
            await settled(in_transaction(self._ledger, delete))
        except _CONFLICTS as error:
            raise ConversationConflict(conversation_id) from error

    # --- Entries ------------------------------------------------------------------------------------------------------

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Raises EntryNotFound, which is a LookupError, and EncodeError for an entry that the framework refuses."""
        path = await self._find_path(entry_id, 1)
        return path.entry(len(path.units) - 1)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to `head_id`, or the last `limit` of them. An entry that the framework refuses is left out;
        the log `chatledger.adapters` tells its seq. Raises EntryNotFound.
        """
        if head_id is None or (limit is not None and limit <= 0):
            return []
        return (await self._find_path(head_id, limit)).entries(limit)

    async def _history_of(
        self, record: ConversationRecord, *, limit: int | None = None
    ) -> list[ConversationEntry] | None:
        """The framework's own step between a record and its history, which knows the thread."""
        if record.head_id is not None and limit != 0:
            try:
                return (await _read_path(self._ledger, record.conversation_id, record.head_id, limit)).entries(limit)
            except EntryNotFound:
                pass  # another writer was here; the framework reads the record again
        return cast("list[ConversationEntry] | None", await super()._history_of(record, limit=limit))

    async def _find_path(self, entry_id: str, limit: int | None) -> _Path:
        """The path in any thread that has the entry: those of forks are copies, so they are alike."""
        for message in await self._ledger.messages.find(entry_id):
            try:
                return await _read_path(self._ledger, message.thread_id or "", entry_id, limit)
            except EntryNotFound:
                continue
        raise EntryNotFound(entry_id)

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def _write(self, write: _Write, expected: str | None) -> None:
        async def within(transaction: Transaction) -> None:
            await self._write_within(transaction, write, expected)

        try:
            if not await self._append(write, expected):
                await in_transaction(self._ledger, within)
        except RunConflict:  # a run belongs to one thread, and the framework lets a caller choose its id
            write = write.without_runs()
            await in_transaction(self._ledger, within)

    async def _append(self, write: _Write, expected: str | None) -> bool:
        """Write with one statement, if the entries follow the end of the active branch. Returns whether that was so.

        The mark holds the end of the branch, which nobody else may have moved, and the version of its value the record.
        """
        if expected is None or not write.continues_one_path:
            return False
        end = await self._ledger.messages.history(write.id, newest=1, partials=False)
        stored = await _read_stored(self._ledger, write.id)
        write.require(stored, expected)
        assert stored is not None
        if _last(end.messages) != write.chains[0].parent_id:
            return False
        try:
            appended = await self._ledger.messages.append(
                write.id,
                write.chains[0].rows,
                rules=self._rules,
                expected=end.mark,
                kv={_KEY: write.value},
                kv_expected={_KEY: stored.version},
            )
        except LimitExceeded:  # several appends of a transaction may be within the limits
            return False
        if appended.replayed:  # its answer was lost, or the entries stand elsewhere
            now = await _read_stored(self._ledger, write.id)
            return now is not None and now.record.revision == write.record.revision
        return True

    async def _write_within(self, transaction: Transaction, write: _Write, expected: str | None) -> None:
        try:
            stored = await _hold(transaction, write.id)
            if stored is None:  # somebody else's thread
                raise ConversationConflict(write.id)
        except ThreadNotFound:
            stored = None
        write.require(stored, expected)
        if stored is None:
            await transaction.threads.create(write.id, user_id=write.record.scope, kind=_KIND, rules=self._rules)
        for chain in write.chains:
            await self._go_to(transaction, write, chain.parent_id)
            await self._append_all(transaction, write.id, chain.rows)
        await self._go_to(transaction, write, write.record.head_id)
        version = 0 if stored is None else stored.version
        await transaction.kv.put(("thread", write.id), _KEY, write.value, expected=version)

    async def _go_to(self, transaction: Transaction, write: _Write, entry_id: str | None) -> None:
        """Let the active branch end at the entry (None: before the first): it does, or another one does and becomes the
        active one, or a new branch does. An entry of another conversation is copied with its path.
        """
        end = await transaction.messages.history(write.id, newest=1, partials=False)
        if _last(end.messages) == entry_id:
            return
        if entry_id is None:
            at, of = 0, None
        else:
            try:
                at, of = await _place_of(transaction, write.id, entry_id)
            except EntryNotFound:
                await self._copy(transaction, write, entry_id)
                return
        for branch in await transaction.branches.list(write.id):
            if branch.version == at and not branch.active:
                last = await transaction.messages.history(write.id, branch=branch.branch, newest=1, partials=False)
                if _last(last.messages) == entry_id:
                    await transaction.branches.activate(write.id, branch.branch)
                    return
        await transaction.branches.fork(write.id, at, branch=of)

    async def _copy(self, transaction: Transaction, write: _Write, entry_id: str) -> None:
        """Copy the path up to an entry of another conversation, from where it leaves what this thread has already."""
        path = await self._path_elsewhere(transaction, write, entry_id)
        known, unknown = 0, len(path.units)  # what is stored is stored with its path, so it is the first of them
        while known < unknown:
            middle = 0 if known == 0 and unknown == len(path.units) else (known + unknown) // 2
            try:
                await _place_of(transaction, write.id, path.units[middle].id)
                known = middle + 1
            except EntryNotFound:
                unknown = middle
        await self._go_to(transaction, write, path.units[known - 1].id if known else None)
        anew = dict.fromkeys(("thread_id", "branch", "seq", "run_id", "answers"))
        rows = path.messages[path.units[known - 1].end if known else 0 :]
        await self._append_all(transaction, write.id, [copy_with(row, {**anew, "violations": []}) for row in rows])

    async def _path_elsewhere(self, transaction: Transaction, write: _Write, entry_id: str) -> _Path:
        found = [message.thread_id for message in await transaction.messages.find(entry_id)]
        for thread_id in dict.fromkeys([write.record.forked_from, *found]):
            if thread_id not in (None, write.id):
                try:
                    return await _read_path(transaction, thread_id, entry_id, None)
                except EntryNotFound:
                    continue
        raise ConversationConflict(write.id)

    async def _append_all(self, transaction: Transaction, thread_id: str, rows: Sequence[ChatMessage]) -> None:
        """Append the rows, in halves if they have more bytes than one append may have."""
        try:
            await append_within(transaction, thread_id, rows, rules=self._rules)
        except LimitExceeded:
            if len(rows) == 1:
                raise
            middle = len(rows) // 2
            await self._append_all(transaction, thread_id, rows[:middle])
            await self._append_all(transaction, thread_id, rows[middle:])


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stored:
    """A record, and the version of its value."""

    record: ConversationRecord
    version: int


async def _read_stored(source: Repositories, conversation_id: str) -> _Stored | None:
    """None for a thread without a record, and without a thread. Raises EncodeError for a record that the framework
    refuses.
    """
    try:
        value = await source.kv.get(("thread", conversation_id), _KEY)
    except ThreadNotFound:
        return None
    if value is None:
        return None
    try:
        return _Stored(_RECORD.validate_json(dumps(value.value)), value.version)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(["record", *map(str, first["loc"])])
        raise EncodeError(path, f"Pydantic AI refuses it: {first['type']}") from None


async def _hold(transaction: Transaction, conversation_id: str) -> _Stored | None:
    """The record of a thread whose active branch is locked until the transaction ends, as every writer here locks it.
    Raises ThreadNotFound.
    """
    await transaction.messages.append(conversation_id, [])
    return await _read_stored(transaction, conversation_id)


@dataclass(slots=True)
class _Unit:
    """An entry as rows, and the index behind the last of them among the messages that were read."""

    id: str
    rows: list[ChatMessage]
    end: int

    def joins(self, row: ChatMessage) -> bool:
        """Whether the row belongs to the entry as well. A redacted row has lost its format, and is known by its id."""
        if row.format == NAME:
            return continues(row)
        stem, _, number = (row.message_id or "").rpartition("/")
        return stem == quote(self.id, safe="") and number.isdigit()

    def message(self) -> JsonValue:
        """The message of the framework. Without any part, because it was redacted, it is an empty request."""
        writer = Writer()
        for index, row in enumerate(self.rows):
            fitted = fit(row)
            if fitted is not None:
                writer.write(fitted, index + 1, is_own=row.format == NAME)
        first, *others = writer.messages or [request_head([])]
        if others:  # redacted rows between the others
            assert isinstance(first, dict)
            first = {**first, "parts": [part for one in writer.messages for part in cast("Any", one)["parts"]]}
        return first


def _units(messages: Sequence[ChatMessage]) -> list[_Unit]:
    """The entries. Each message of another format is one, too."""
    units: list[_Unit] = []
    for index, row in enumerate(messages):
        if units and units[-1].joins(row):
            units[-1].rows.append(row)
            units[-1].end = index + 1
        else:
            units.append(_Unit(row.message_id or "", [row], index + 1))
    return units


def _last(messages: Sequence[ChatMessage]) -> str | None:
    """The id of the last entry; None for none."""
    units = _units(messages)
    return units[-1].id if units else None


@dataclass(frozen=True, slots=True)
class _Path:
    """The messages up to the last one of an entry, and their entries. A window also has the parent of its first one."""

    messages: Sequence[ChatMessage]
    units: Sequence[_Unit]

    def entry(self, index: int) -> ConversationEntry:
        """Raises EncodeError."""
        unit = self.units[index]
        (message,) = CODEC.as_models([unit.message()])
        return ConversationEntry(id=unit.id, parent_id=self.units[index - 1].id if index else None, message=message)

    def entries(self, limit: int | None) -> list[ConversationEntry]:
        entries = []
        for index in range(0 if limit is None else max(len(self.units) - limit, 0), len(self.units)):
            try:
                entries.append(self.entry(index))
            except EncodeError as error:
                seq = self.units[index].rows[0].seq
                _LOGGER.warning("An entry is left out that Pydantic AI refuses, at seq %s: %s", seq, error)
        return entries


async def _read_path(source: Repositories, thread_id: str, entry_id: str, limit: int | None) -> _Path:
    """The path up to an entry, at least `limit` entries and the one before them. Raises EntryNotFound.

    Nearly always the active branch ends with the entry; if that does not have it, it is looked for.
    """
    newest = None if limit is None else limit + 1
    branch: int | None = None
    before: int | None = None
    while True:
        try:
            history = await source.messages.history(
                thread_id, branch=branch, newest=newest, before=before, partials=False
            )
        except NotFound:
            raise EntryNotFound(entry_id) from None
        units = _units(history.messages)
        found = next((index for index, unit in enumerate(units) if unit.id == entry_id), None)
        if found is None:
            if before is not None:
                raise EntryNotFound(entry_id)
            at, branch = await _place_of(source, thread_id, entry_id)
            before = at + 1
        elif limit is None or newest is None or found >= limit or history.previous_cursor is None:
            return _Path(history.messages[: units[found].end], units[: found + 1])
        else:
            newest *= 2  # some of the entries are several messages


async def _place_of(source: Repositories, thread_id: str, entry_id: str) -> tuple[int, int]:
    """The seq of the last message of an entry, and the branch that stores it. Raises EntryNotFound."""
    try:
        first = await source.messages.get(thread_id, entry_id)
        unit, branch, at = _Unit(entry_id, [first], 0), first.branch or 0, first.seq or 0
        while True:
            page = await source.messages.history(thread_id, branch=branch, after=at, limit=_ROWS)
            for row in page:
                if not unit.joins(row):
                    return at, branch
                at = row.seq or 0
            if page.next_cursor is None:
                return at, branch
    except NotFound:
        raise EntryNotFound(entry_id) from None


# --- Writing ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chain:
    """New entries of which each follows the one before, as rows."""

    parent_id: str | None
    last_id: str
    rows: list[ChatMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Write:
    """A record and new entries as they are stored."""

    record: ConversationRecord
    value: JsonValue
    chains: list[_Chain]

    @classmethod
    def of(cls, record: ConversationRecord, entries: Sequence[ConversationEntry]) -> _Write:
        """Raises DecodeError."""
        chains: list[_Chain] = []
        for entry, rows in zip(entries, _rows_of(record.conversation_id, entries), strict=True):
            if not chains or chains[-1].last_id != entry.parent_id:
                chains.append(_Chain(entry.parent_id, entry.id))
            chains[-1].rows += rows
            chains[-1].last_id = entry.id
        return cls(record, _value_of(record), chains)

    @property
    def id(self) -> str:
        return cast(str, self.record.conversation_id)

    @property
    def continues_one_path(self) -> bool:
        return len(self.chains) == 1 and self.chains[0].last_id == self.record.head_id

    def require(self, stored: _Stored | None, expected: str | None) -> None:
        """Raises ConversationConflict."""
        found = None if stored is None else stored.record
        if (None if found is None else found.revision) != expected:
            raise ConversationConflict(self.id)
        if found is not None and found.scope != self.record.scope:
            raise ConversationConflict(self.id)

    def without_runs(self) -> _Write:
        chains = [
            replace(chain, rows=[copy_with(row, {"run_id": None}) for row in chain.rows]) for chain in self.chains
        ]
        return replace(self, chains=chains)


def _value_of(record: ConversationRecord) -> JsonValue:
    try:
        return cast(JsonValue, _RECORD.dump_python(record, mode="json", warnings=False))
    except ValueError as error:  # Pydantic's for a live object
        raise DecodeError("record.deferred_tool_requests", f"it has no JSON ({type(error).__name__})") from error


def _rows_of(conversation_id: str, entries: Sequence[ConversationEntry]) -> Iterator[list[ChatMessage]]:
    """The rows of each entry, under its id, its time and its run. Raises DecodeError."""
    by_entry: list[list[ChatMessage]] = []
    for row in CODEC.decode([entry.message for entry in entries], rules="lenient").messages:
        if not continues(row):
            by_entry.append([])
        by_entry[-1].append(row)
    for entry, rows in zip(entries, by_entry, strict=True):
        ids = [entry.id, *(f"{quote(entry.id, safe='')}/{number}" for number in range(1, len(rows)))]
        shared = {"run_id": _run_of(entry.message, conversation_id), "created_at": _time_of(entry.message)}
        yield [copy_with(row, {**shared, "message_id": id_}) for row, id_ in zip(rows, ids, strict=True)]


def _run_of(message: Any, conversation_id: str) -> str | None:
    """The run, which belongs to one thread: that of the conversation in which it ran, and no copy's."""
    run_id = message.run_id
    if message.conversation_id != conversation_id or not isinstance(run_id, str):
        return None
    return run_id if 0 < len(run_id.encode(errors="replace")) <= MAX_KEY_BYTES else None


def _time_of(message: Any) -> datetime | None:
    time = message.timestamp
    return time if isinstance(time, datetime) and time.tzinfo is not None else None
