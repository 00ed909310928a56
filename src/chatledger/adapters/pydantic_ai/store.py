"""The store: what Pydantic AI calls, on the verbs of a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from chatledger.adapters.extra import importing
from chatledger.adapters.pydantic_ai.path import EntryNotFound, EntryPath, last_entry, place_of, read_path
from chatledger.adapters.pydantic_ai.record import KEY, Write, hold, read_stored, stored_record
from chatledger.adapters.write import append_within, in_transaction, settled
from chatledger.arguments import RULES, Kind, require
from chatledger.errors import (
    IdConflict,
    LimitExceeded,
    NotFound,
    RunConflict,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Newest, Put, RulesLevel
from chatledger.models.base import copy_with
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.repositories.branches import fork_at
from chatledger.transaction import Transaction, as_user

with importing("pydantic_ai", extra="pydantic-ai", name="Pydantic AI"):
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )

_LEDGER = Kind("a Ledger", Ledger)
_KIND = "pydantic-ai"
"""The kind of the threads, by which they are listed."""
_PAGE = 1_000
_AT_ONCE = 500
"""Threads whose records one statement reads."""
_CONFLICTS = (IdConflict, NotFound, VersionConflict)


class LedgerConversationStore(ConversationStore):  # type: ignore[misc]  # the type checker does not have Pydantic AI
    """Pydantic AI's store of conversations on a ledger. The ledger must be the tenant's, not the view of a user. A
    conversation that is saved with a `scope` is a thread of that user.

        store = LedgerConversationStore(ledger)
        await store.save(await agent.run("Hello", conversation=conversation), scope="ada")

    Each save is one transaction: it stores the new entries and the record, or raises ConversationConflict and stores
    nothing. Deleting a conversation deletes its messages for good; a fork has copies of its own.

    `rules` is the level of the threads that the store creates, and of the messages that it adds. Pydantic AI repairs a
    history when it sends it, so the default accepts every message.
    """

    def __init__(self, ledger: Ledger, *, rules: RulesLevel = "lenient") -> None:
        require(_LEDGER, ledger=ledger)
        require(RULES, rules=rules)
        self._ledger = ledger
        self._rules = rules

    # --- Records ------------------------------------------------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or None. Raises EncodeError for a record that the framework refuses."""
        stored = await read_stored(self._ledger, conversation_id)
        return None if stored is None else stored.record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> list[ConversationRecord]:
        """The records of a scope, or all records; those that were saved last come first. Reads all of them, 500 with
        one statement, whatever the limit is.
        """
        ids = await self._conversation_ids(scope)
        records: list[ConversationRecord] = []
        for start in range(0, len(ids), _AT_ONCE):
            records += await self._records_of(ids[start : start + _AT_ONCE])
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def _records_of(self, ids: Sequence[str]) -> list[ConversationRecord]:
        values_of = await self._ledger.kv.list_many([("thread", id_) for id_ in ids])
        records = []
        for (_, conversation_id), values in values_of.items():
            value = next((value for value in values if value.key == KEY), None)
            if value is None and values.next_cursor is not None:  # an application keeps many values beside it
                value = await self._ledger.kv.get(("thread", conversation_id), KEY)
            if value is not None:
                records.append(stored_record(value).record)
        return records

    async def _conversation_ids(self, scope: str | None) -> list[str]:
        ledger = self._ledger if scope is None else self._ledger.user(scope)
        ids: list[str] = []
        cursor = None
        while True:
            page = await ledger.threads.list(
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
        is not a conversation, and if the head or the parent of an entry does not exist; DecodeError with the path of a
        value that is not JSON; and the ledger's other errors.
        """
        write = Write.of(record, new_entries)
        try:
            await settled(self._write(write, expected_revision))
        except _CONFLICTS as error:
            raise ConversationConflict(record.conversation_id) from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete the thread for good, with its messages, runs and feedback. Raises ConversationConflict if the stored
        record has another revision.
        """

        async def delete(transaction: Transaction) -> None:
            stored = await hold(transaction, conversation_id)
            if stored is None or stored.record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            await transaction.threads.delete(conversation_id)

        try:
            await settled(in_transaction(self._ledger, delete))
        except _CONFLICTS as error:
            raise ConversationConflict(conversation_id) from error

    # --- Entries ------------------------------------------------------------------------------------------------------

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with that id. Raises EntryNotFound, which is a LookupError, and EncodeError for an entry that the
        framework refuses.
        """
        path = await self._find_path(entry_id, 1)
        return path.entry(len(path.units) - 1)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to `head_id`, or the last `limit` of them. An entry that the framework refuses is left out;
        the logger `chatledger.adapters` reports its seq. Raises EntryNotFound.
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
                return (await read_path(self._ledger, record.conversation_id, record.head_id, limit)).entries(limit)
            except EntryNotFound:
                pass  # another writer was here; the framework reads the record again
        return cast("list[ConversationEntry] | None", await super()._history_of(record, limit=limit))

    async def _find_path(self, entry_id: str, limit: int | None) -> EntryPath:
        """The path in any thread that has the entry: those of forks are copies, so they are alike."""
        for message in await self._ledger.messages.find(entry_id):
            try:
                return await read_path(self._ledger, message.thread_id or "", entry_id, limit)
            except EntryNotFound:
                continue
        raise EntryNotFound(entry_id)

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def _write(self, write: Write, expected: str | None) -> None:
        async def within(transaction: Transaction) -> None:
            await self._write_within(transaction, write, expected)

        try:
            if not await self._append(write, expected):
                await in_transaction(self._ledger, within)
        except RunConflict:  # a run belongs to one thread, and the framework lets a caller choose its id
            write = write.without_runs()
            await in_transaction(self._ledger, within)

    async def _append(self, write: Write, expected: str | None) -> bool:
        """Write with one statement, if the entries follow the end of the active branch. Returns whether that was so.

        The mark guards the end of the branch, and the version of its value guards the record: no other writer may have
        changed them.
        """
        if expected is None or not write.continues_one_path:
            return False
        end = await self._ledger.messages.history(write.id, Newest(1))
        stored = await read_stored(self._ledger, write.id)
        write.require(stored, expected)
        assert stored is not None
        if last_entry(with_draft(end)) != write.chains[0].parent_id:
            return False
        try:
            appended = await self._ledger.messages.append(
                write.id,
                write.chains[0].rows,
                rules=self._rules,
                expected=end.mark,
                kv={KEY: Put(write.value, expected=stored.version)},
            )
        except LimitExceeded:  # several appends of a transaction may be within the limits
            return False
        if appended.replayed:  # its answer was lost, or the entries stand elsewhere
            now = await read_stored(self._ledger, write.id)
            return now is not None and now.record.revision == write.record.revision
        return True

    async def _write_within(self, transaction: Transaction, write: Write, expected: str | None) -> None:
        try:
            stored = await hold(transaction, write.id)
            if stored is None:  # not a conversation
                raise ConversationConflict(write.id)
        except ThreadNotFound:
            stored = None
        write.require(stored, expected)
        if stored is None:
            owned = as_user(transaction, write.record.scope)
            await owned.threads.create(write.id, kind=_KIND, rules=self._rules)
        for chain in write.chains:
            await self._go_to(transaction, write, chain.parent_id)
            await self._append_all(transaction, write.id, chain.rows)
        await self._go_to(transaction, write, write.record.head_id)
        version = 0 if stored is None else stored.version
        await transaction.kv.put(("thread", write.id), KEY, write.value, expected=version)

    async def _go_to(self, transaction: Transaction, write: Write, entry_id: str | None) -> None:
        """Let the active branch end at the entry (None: before the first): it does, or another one does and becomes the
        active one, or a new branch does. An entry of another conversation is copied with its path.
        """
        end = await transaction.messages.history(write.id, Newest(1))
        if last_entry(with_draft(end)) == entry_id:
            return
        if entry_id is None:
            at, of = 0, None
        else:
            try:
                at, of = await place_of(transaction, write.id, entry_id)
            except EntryNotFound:
                await self._copy(transaction, write, entry_id)
                return
        for branch in await transaction.branches.list(write.id):
            if branch.last_seq == at and not branch.active:
                last = await transaction.messages.history(write.id, Newest(1), branch=branch.branch)
                if last_entry(with_draft(last)) == entry_id:
                    await transaction.branches.activate(write.id, branch.branch)
                    return
        await fork_at(scope_of(transaction), write.id, at, branch=of)

    async def _copy(self, transaction: Transaction, write: Write, entry_id: str) -> None:
        """Copy the path up to an entry of another conversation, from where it leaves what this thread has already."""
        path = await self._path_elsewhere(transaction, write, entry_id)
        known, unknown = 0, len(path.units)  # what is stored is stored with its path, so it is the first of them
        while known < unknown:
            middle = 0 if known == 0 and unknown == len(path.units) else (known + unknown) // 2
            try:
                await place_of(transaction, write.id, path.units[middle].id)
                known = middle + 1
            except EntryNotFound:
                unknown = middle
        await self._go_to(transaction, write, path.units[known - 1].id if known else None)
        anew = dict.fromkeys(("thread_id", "branch", "seq", "run_id", "answers"))
        rows = path.messages[path.units[known - 1].end if known else 0 :]
        await self._append_all(transaction, write.id, [copy_with(row, {**anew, "violations": []}) for row in rows])

    async def _path_elsewhere(self, transaction: Transaction, write: Write, entry_id: str) -> EntryPath:
        threads = [message.thread_id for message in await transaction.messages.find(entry_id)]
        for thread_id in dict.fromkeys([write.record.forked_from, *threads]):
            if thread_id not in (None, write.id):
                try:
                    return await read_path(transaction, thread_id, entry_id, None)
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
