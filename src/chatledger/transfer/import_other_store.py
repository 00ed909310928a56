"""Import of a framework's store: each session becomes a thread, as the framework's adapter would have written it.

A session is stored completely or not at all. A value in `kv` beside its thread records how far it was imported.
So the next import adds only new rows, and continues an import that was killed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from chatledger.errors import (
    Conflict,
    DecodeError,
    Erased,
    IdConflict,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    RuleViolation,
    VersionConflict,
)
from chatledger.ledger import Ledger, Transaction
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import same_json
from chatledger.repositories import scope_of
from chatledger.storage.drivers.urls import Address
from chatledger.storage.lists.thread_list import find_threads
from chatledger.transaction import as_user
from chatledger.transfer.other_stores import adk, langchain, openai_agents
from chatledger.transfer.other_stores.database import SourceDatabase, open_source
from chatledger.transfer.other_stores.store import SharedValues, SourceSession, Store
from chatledger.transfer.report import FailedRecord, ImportReport, Outcome
from chatledger.transfer.store_record import batches, written

# Errors of a session. Any other error comes from a database and ends the import.
_OF_A_SESSION = (DecodeError, RuleViolation, Conflict, LimitExceeded, NotFound, InvalidArgument, ValidationError)
_NAMESPACE = "chatledger-import"
_STATE = "state"
"""The key under which `kv` records how far a session was imported, and the shared values as they were imported."""
_ABSENT: Final = object()

STORES = ("openai-agents", "langchain", "adk")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """`store` is one of STORES. `table` is the table of the messages; None is the framework's usual one.

    `user_id` becomes the owner of all threads; ADK's sessions name their users. `sessions` are the ids of the sessions
    to import; empty means all. With `stop_on_error`, the first bad session ends the import.
    """

    store: str
    table: str | None = None
    user_id: str | None = None
    sessions: Sequence[str] = ()
    rules: RulesLevel = "lenient"
    dry_run: bool = False
    stop_on_error: bool = False


@asynccontextmanager
async def open_store(url: Address, options: StoreOptions) -> AsyncIterator[Store]:
    """Open the store in the database at a path, `sqlite:///…` or `postgresql://…`, read-only.

    Raises InvalidArgument for options that do not go together, and StorageError if the database does not exist or has
    no tables of the framework.
    """
    async with open_source(url) as database:
        store = _store_of(database, options)
        await store.prepare()
        yield store


async def import_other_store(
    ledger: Ledger,
    store: Store,
    options: StoreOptions,
    *,
    on_session: Callable[[int, int], None] = lambda _done, _total: None,
) -> ImportReport:
    """Import the sessions of a store. `on_session` is called with the number of sessions read and their total. Holds
    one session in memory at a time, or fifty with ADK.

    The import reports a bad session and continues, unless `stop_on_error` is set. It skips a session whose thread was
    erased, and lists it in the report's `erased`. Raises StorageError if a database fails; the sessions reported until
    then are stored.
    """
    return await _Import(ledger, store, options).run(on_session)


def _store_of(database: SourceDatabase, options: StoreOptions) -> Store:
    if options.store == "adk":
        if options.table is not None:
            raise InvalidArgument("table", "cannot be chosen: ADK's tables have fixed names")
        if options.user_id is not None:
            raise InvalidArgument("user_id", "cannot be given: ADK's sessions have users, who become the owners")
        return adk.ADKStore(database, sessions=options.sessions)
    if options.store == "langchain":
        return langchain.LangChainStore(database, options.table or langchain.TABLE, sessions=options.sessions)
    if options.store == "openai-agents":
        return openai_agents.AgentsStore(database, options.table or openai_agents.TABLE, sessions=options.sessions)
    raise InvalidArgument("store", f"must be one of {', '.join(STORES)}")


class _Import:
    def __init__(self, ledger: Ledger, store: Store, options: StoreOptions) -> None:
        self._ledger = ledger
        self._store = store
        self._options = options
        self._name = store.place
        self._report = ImportReport()

    async def run(self, on_session: Callable[[int, int], None]) -> ImportReport:
        report = self._report
        total = await self._store.count()
        on_session(0, total)
        for missing in await self._store.missing():
            await self._judged(DecodeError(f"session {missing!r}", "the store has no such session"), self._add)
            if report.stopped:
                return report
        async for shared in self._store.shared():
            await self._judged(shared, self._add_shared)
            if report.stopped:
                return report
        done = 0
        async for session in self._store.sessions():
            await self._judged(session, self._add)
            done += 1
            on_session(done, max(done, total))
            if report.stopped:
                return report
        if not report.threads and not report.failures and not report.erased:
            report.empty.append(self._name)
        return report

    async def _judged(self, source: Any, add: Callable[[Any], Any]) -> None:
        """Add a session or shared values, or report the error."""
        place = source.path if isinstance(source, DecodeError) else source.label
        try:
            if isinstance(source, DecodeError):
                raise DecodeError("", source.detail)
            await add(source)
        except Erased as error:
            self._report.erased.append(FailedRecord(self._name, place, error))
        except _OF_A_SESSION as error:
            self._report.failures.append(FailedRecord(self._name, place, error))
            self._report.stopped = self._options.stop_on_error

    # --- Sessions -----------------------------------------------------------------------------------------------------

    async def _add(self, session: SourceSession) -> None:
        state = await self._stored(session)
        if state is not None and _is_same(session, state):
            self._report.add("unchanged", 0, [])
            return
        known = 0 if state is None else state["rows"]
        decoded = self._store.decode(session, session.rows[known:], self._options.rules)
        try:
            stored = await self._write(session, decoded.messages, state)
        except IdConflict as error:
            if error.what != "thread" or state is not None:
                raise
            await self._add(session)  # a concurrent import created the thread first: compare
            return
        except VersionConflict as error:
            detail = (
                "both the session in the store and the thread in the ledger have changed; nothing was imported. To"
                " take the store's session, delete the thread with ledger.threads.delete and import again"
            )
            raise VersionConflict(
                error.what, error.expected, error.actual, detail, thread_id=error.thread_id, branch=error.branch
            ) from error
        outcome: Outcome = "created" if state is None else "grown"
        self._report.add(outcome, len(stored), [violation for message in stored for violation in message.violations])
        self._report.losses.update(loss.code for loss in decoded.losses)
        self._report.without_time += any(message.created_at is None for message in decoded.messages)

    async def _stored(self, session: SourceSession) -> dict[str, Any] | None:
        """How far the session was imported; None if it was not imported yet.

        Raises IdConflict if the thread was not imported from this session or has another owner, and if imported rows
        have changed.
        """
        thread = (await find_threads(scope_of(self._ledger), [session.thread_id])).get(session.thread_id)
        if thread is None:
            return None
        value = await self._ledger.kv.get(_scope(session), _STATE)
        state = None if value is None else value.value
        if not isinstance(state, dict) or (state["store"], state["session"]) != (self._options.store, session.name):
            detail = f"thread {session.thread_id!r} exists already and was not imported from this session"
            raise IdConflict("thread", session.thread_id, detail)
        if thread.user_id != self._owner(session):
            whom = "without an owner" if thread.user_id is None else "for another user"
            detail = (
                f"thread {session.thread_id!r} was imported {whom}, and the owner of a thread cannot change; to import"
                " the session for another owner, delete the thread with ledger.threads.delete first"
            )
            raise IdConflict("thread", session.thread_id, detail)
        if len(session.rows) < state["rows"] or session.digest(state["rows"]) != state["digest"]:
            detail = (
                "imported rows have been changed or removed in the store; to import the session again, delete the"
                " thread with ledger.threads.delete first (after an erasure it cannot be imported again)"
            )
            raise IdConflict("thread", session.thread_id, f"thread {session.thread_id!r}: {detail}")
        return state

    def _owner(self, session: SourceSession) -> str | None:
        return session.user_id if self._store.has_users else self._options.user_id

    async def _write(
        self, session: SourceSession, messages: Sequence[ChatMessage], state: Mapping[str, Any] | None
    ) -> list[ChatMessage]:
        """Write the session in one transaction, which a dry run rolls back. Raises VersionConflict if the thread has
        changed since the last import.
        """
        thread_id, rules = session.thread_id, self._options.rules
        stored: list[ChatMessage] = []
        async with written(self._ledger, dry_run=self._options.dry_run) as tx:
            if state is None:
                await as_user(tx, self._owner(session)).threads.create(
                    thread_id,
                    kind=session.kind,
                    rules=rules,
                    created_at=session.created_at,
                )
            mark = None if state is None else state["mark"]
            for batch in [*batches(messages)] or [[]]:
                appended = await tx.messages.append(thread_id, batch, expected=mark, rules=rules)
                stored += appended.messages
                mark = appended.mark
            for key in sorted(session.values):
                await tx.kv.put(("thread", thread_id), key, session.values[key])
            await tx.kv.put(_scope(session), _STATE, self._state(session, mark))
        return stored

    def _state(self, session: SourceSession, mark: str | None) -> dict[str, Any]:
        rows = len(session.rows)
        return {
            "store": self._options.store,
            "session": session.name,
            "rows": rows,
            "digest": session.digest(rows),
            "values": session.values_digest,
            "mark": mark,
        }

    # --- Values that belong to no session -----------------------------------------------------------------------------

    async def _add_shared(self, shared: SharedValues) -> None:
        """Put the values that changed in the store since the last import. Raises IdConflict if the ledger holds
        another value by now. A value that changed only in the ledger stays.
        """
        async with written(self._ledger, dry_run=self._options.dry_run) as tx:
            place = (*shared.scope[:-1], f"{_NAMESPACE}/{shared.scope[-1]}")
            record = await tx.kv.get(place, _STATE)
            before: Mapping[str, Any] = record.value if record is not None and isinstance(record.value, dict) else {}
            new = [key for key, value in shared.values.items() if not same_json(before.get(key, _ABSENT), value)]
            for key in new:
                await self._put(tx, shared, key, before.get(key, _ABSENT))
            if new:
                await tx.kv.put(place, _STATE, dict(shared.values))
        self._report.values += len(new)

    async def _put(self, tx: Transaction, shared: SharedValues, key: str, before: object) -> None:
        value = shared.values[key]
        held = await tx.kv.get(shared.scope, key)
        current = _ABSENT if held is None else held.value
        if current is not _ABSENT and not same_json(current, before) and not same_json(current, value):
            raise IdConflict("value", key, f"the store has a new value of {key!r}, but the ledger holds another one")
        await tx.kv.put(shared.scope, key, value)


def _scope(session: SourceSession) -> tuple[str, ...]:
    return ("thread", session.thread_id, _NAMESPACE)


def _is_same(session: SourceSession, state: Mapping[str, Any]) -> bool:
    return bool(len(session.rows) == state["rows"] and session.values_digest == state["values"])
