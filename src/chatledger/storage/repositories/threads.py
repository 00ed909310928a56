"""Threads: creates, finds, lists and deletes conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from types import NoneType
from typing import Any, Final

from sqlalchemy import RowMapping, Select, and_, insert, literal, select, tuple_, update

from chatledger.arguments import (
    BOOL,
    DICT_OR_NONE,
    INT,
    INT_OR_NONE,
    MESSAGES,
    RULES_OR_NONE,
    STR,
    STR_OR_NONE,
    STRINGS,
    Kind,
    require,
    require_items,
)
from chatledger.errors import AlreadyExists, InvalidArgument, LimitExceeded, ThreadNotFound
from chatledger.ids import new_id, new_stamp
from chatledger.models import ChatMessage, Deleted, Page, RulesLevel, Thread
from chatledger.models.base import refusing
from chatledger.rules import Finding, Tip
from chatledger.storage.append.preflight import Seen
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.history.path import Segment, cut, damaged_active_branch, read_lineage, write_lineage
from chatledger.storage.history.window import END
from chatledger.storage.repositories.bulk import NewThread, encode_thread, load_threads
from chatledger.storage.repositories.check import check_branch, require_level
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.deletion import delete_thread, retain
from chatledger.storage.repositories.erasures import refuse_erased
from chatledger.storage.repositories.owned import owned
from chatledger.storage.repositories.reencrypt import threads_after
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, encrypt_values, to_model
from chatledger.storage.schema.columns import Ciphertext, Key, Moment
from chatledger.storage.schema.tables import branches, messages, threads
from chatledger.storage.schema.text import encode_key, encode_text


class Unset(Enum):
    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""The default of the fields that `update` leaves unchanged, because None is a value there."""

_STR_OR_UNSET = Kind("a str or None", str, NoneType, Unset)
_DICT_OR_UNSET = Kind("a dict or None", dict, NoneType, Unset)
_RULES_OR_UNSET = Kind(RULES_OR_NONE.said, NoneType, Unset, words=tuple(RULES_OR_NONE.words))
_THREAD = Kind("a Thread", Thread)
_NEW_THREAD = Kind("a NewThread", NewThread)


class ThreadRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def create(
        self,
        thread_id: str | None = None,
        *,
        title: str | None = None,
        user_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        rules: RulesLevel | None = None,
        created_at: datetime | None = None,
        exist_ok: bool = False,
        kind: str | None = None,
    ) -> Thread:
        """Create an empty thread with branch 0. Its owner is set here and never changes; on a user's ledger it is that
        user.

        If the thread exists, the call raises AlreadyExists. With `exist_ok` it returns the existing thread unchanged.
        If that belongs to another user than `user_id`, it raises ThreadNotFound, as for a thread that does not exist.
        """
        require(STR_OR_NONE, thread_id=thread_id, title=title, user_id=user_id, kind=kind)
        require(RULES_OR_NONE, rules=rules)
        require(BOOL, exist_ok=exist_ok)
        require(DICT_OR_NONE, metadata=metadata)
        with refusing():
            thread = Thread(
                thread_id=new_id() if thread_id is None else thread_id,
                user_id=self._scope.tenant.seen_by(user_id).user_id,
                title=title,
                metadata=metadata,
                rules=rules,
                created_at=(now := datetime.now(UTC)) if created_at is None else created_at,
                active_at=now if created_at is None else created_at,
                kind=kind,
            )
        _check_keys(thread)
        made = await self._scope.write(lambda sql: create_thread(sql, self._scope.tenant, thread, exist_ok=exist_ok))
        if made.seen is not None:
            self._scope.learn(encode_key(thread.thread_id, "thread_id"), made.seen)
        return made.thread

    def prepare(self, thread: Thread, messages: Sequence[ChatMessage], *, rules: RulesLevel | None = None) -> NewThread:
        """Judge a whole new thread for `load`, without the database. Raises RuleViolation, IdConflict and
        LimitExceeded.
        """
        require(_THREAD, thread=thread)
        require(MESSAGES, messages=messages)
        self._scope.refuse_view("threads.prepare")
        require(RULES_OR_NONE, rules=rules)
        with refusing("thread"):
            thread = Thread.model_validate(dict(thread))
        level = rules or self._scope.rules
        return encode_thread(self._scope.tenant, thread, messages, level=level)

    async def load(self, new: Sequence[NewThread]) -> None:
        """Store whole new threads (from `prepare`), for imports. Raises AlreadyExists, and then stores none of them."""
        require_items(_NEW_THREAD, new=new)
        self._scope.refuse_view("threads.load")
        await self._scope.write(lambda sql: load_threads(sql, self._scope.tenant, new))

    async def get(self, thread_id: str, *, user_id: str | None = None) -> Thread:
        """The thread. Raises ThreadNotFound, also for a thread of another user if `user_id` is given."""
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, user_id=user_id)
        thread = await self.find(thread_id, user_id=user_id)
        if thread is None:
            raise ThreadNotFound(thread_id)
        return thread

    async def find(self, thread_id: str, *, user_id: str | None = None) -> Thread | None:
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, user_id=user_id)
        tenant = self._scope.tenant.seen_by(user_id)
        return await self._scope.read(lambda sql: find_thread(sql, tenant, thread_id))

    async def find_many(self, thread_ids: Sequence[str]) -> dict[str, Thread]:
        """The existing threads, keyed by id. One query reads up to 500 of them. Invalid ids are ignored."""
        require(STRINGS, thread_ids=thread_ids)
        if isinstance(thread_ids, str):  # each of its characters would be taken for an id
            raise InvalidArgument("thread_ids", "must be a list of str, not str")
        ids = list(dict.fromkeys(filter(_is_key, thread_ids)))
        return await self._scope.read(lambda sql: _find_threads(sql, self._scope.tenant, ids))

    async def complete(self, prefix: str, *, limit: int = 10) -> Sequence[str]:
        """The ids of threads that begin with `prefix`, in the order of their bytes. Reads no more than `limit` rows."""
        require(STR, prefix=prefix)
        require(INT, limit=limit)
        size = page_size(limit)
        return await self._scope.read(lambda sql: _complete(sql, self._scope.tenant, prefix, size))

    async def update(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset | None = UNSET,
        rules: RulesLevel | Unset | None = UNSET,
    ) -> Thread:
        """Change the given fields and return the thread. Stricter rules are first checked against the stored messages
        of every branch; RuleViolation names a message that breaks them.
        """
        require(STR, thread_id=thread_id)
        require(_STR_OR_UNSET, title=title)
        require(_DICT_OR_UNSET, metadata=metadata)
        require(_RULES_OR_UNSET, rules=rules)
        given = {"title": title, "metadata": metadata, "rules": rules}
        values = {name: value for name, value in given.items() if value is not UNSET}
        return await self._scope.write(lambda sql: _update_thread(sql, self._scope.tenant, thread_id, values))

    async def check(self, thread_id: str, *, branch: int | None = None) -> Sequence[Finding]:
        """The rules that a branch (None: the active one) breaks, R13 included, and the calls that are open at its end,
        in order of seq.

        Reads the whole branch, in bounded memory.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        return await self._scope.read(
            lambda sql: check_branch(sql, self._scope.tenant, thread_id, branch), snapshot=True
        )

    async def ids(self) -> AsyncIterator[str]:
        """The ids of all threads in their order. They are read in pages, and nothing else is read of the threads."""
        last = ""
        while page := await self._scope.read(partial(threads_after, tenant=self._scope.tenant, after=last)):
            for thread_id in page:
                yield thread_id
            last = page[-1]

    async def delete(self, thread_id: str) -> Deleted:
        """Delete the thread with its messages, runs and feedback, for good. Returns the number of rows by table."""
        require(STR, thread_id=thread_id)
        return await self._scope.write(lambda sql: delete_thread(sql, self._scope.tenant, thread_id))

    async def retain(
        self,
        *,
        older_than: timedelta | datetime,
        dry_run: bool = False,
        on_batch: Callable[[Deleted], None] | None = None,
    ) -> Deleted:
        """Delete, for good, the threads without a write since a time (a datetime) or for that long (a timedelta). Each
        transaction deletes a few threads, so that no other writer waits long. Returns the number of rows by table;
        `on_batch` receives those of each transaction.

        With `dry_run`, returns the numbers of rows that would go, and deletes nothing.

        After an interruption, call it again to finish. A thread that gets a write meanwhile stays.
        """
        require(BOOL, dry_run=dry_run)
        self._scope.refuse_view("threads.retain")
        return await retain(self._scope, older_than, dry_run=dry_run, on_batch=on_batch)

    async def list(self, *, user_id: str | None = None, limit: int = 50, cursor: str | None = None) -> Page[Thread]:
        """Threads of a user, or of all users, newest activity first. The page's `damaged` tells of those that cannot be
        read.
        """
        require(STR_OR_NONE, user_id=user_id, cursor=cursor)
        require(INT, limit=limit)
        tenant = self._scope.tenant.seen_by(user_id)
        return await self._scope.read(lambda sql: _list_threads(sql, tenant, page_size(limit), cursor))


def _check_keys(thread: Thread) -> None:
    encode_key(thread.thread_id, "thread_id")
    if thread.user_id is not None:
        encode_key(thread.user_id, "user_id")
    if thread.kind is not None:
        encode_key(thread.kind, "kind")


def _is_key(thread_id: str) -> bool:
    try:
        encode_key(thread_id, "thread_id")
    except (InvalidArgument, LimitExceeded):
        return False
    return True


def _key(tenant: Tenant, thread_id: str) -> Any:
    return and_(owned(threads, tenant), threads.c.thread_id == thread_id)


@dataclass(frozen=True, slots=True)
class Made:
    """`seen` is what a preflight of the first append would see; None if the thread existed already."""

    thread: Thread
    seen: Seen | None = None


def create_thread(sql: Sql, tenant: Tenant, thread: Thread, *, exist_ok: bool) -> Made:
    existing = find_thread(sql, tenant, thread.thread_id)
    if existing is None:
        refuse_erased(sql, tenant, [thread.thread_id])
        values = encrypt_values(tenant, threads, thread.model_dump(exclude={"message_count", "last_text", "revision"}))
        if sql.execute(insert_if_absent(sql, threads).values(tenant_id=tenant.name, **values)).rowcount:
            branch = _first_branch(tenant, thread)
            sql.execute(insert(branches).values(**branch))
            stamp, touched = branch["stamp"], thread.active_at
            user = None if thread.user_id is None else encode_text(thread.user_id)
            seen = Seen(True, thread.rules, branch=0, tip=Tip(), stamp=stamp, touched=touched, user_id=user)
            return Made(thread, seen)
        existing = find_thread(sql, tenant, thread.thread_id)  # another process was faster
    if not exist_ok:
        detail = f"thread {thread.thread_id!r} exists already; exist_ok=True gives it, if it is not another user's"
        raise AlreadyExists(thread.thread_id, detail)
    if existing is None or (thread.user_id is not None and existing.user_id != thread.user_id):
        raise ThreadNotFound(thread.thread_id)
    return Made(existing)


def _first_branch(tenant: Tenant, thread: Thread) -> dict[str, Any]:
    return {
        "tenant_id": tenant.name,
        "thread_id": thread.thread_id,
        "branch": 0,
        "lineage": write_lineage([Segment(0, 1, END)]),
        "last_seq": 0,
        "stamp": new_stamp(),
        "created_at": thread.created_at,
    }


def _select_threads() -> Select[Any]:
    """Threads with the version and the last text of their active branch, both joined by primary key."""
    tip = and_(
        branches.c.tenant_id == threads.c.tenant_id,
        branches.c.thread_id == threads.c.thread_id,
        branches.c.branch == threads.c.active_branch,
    )
    last = and_(
        messages.c.tenant_id == threads.c.tenant_id,
        messages.c.thread_id == threads.c.thread_id,
        messages.c.branch == threads.c.active_branch,
        messages.c.seq == branches.c.last_seq,
    )
    columns = [column for column in threads.c if column.name != "tenant_id"]
    return select(*columns, branches.c.lineage, branches.c.last_seq, messages.c.text).select_from(
        threads.outerjoin(branches, tip).outerjoin(messages, last)
    )


def _to_thread(sql: Sql, tenant: Tenant, row: RowMapping) -> Thread:
    """Raises DamagedCell and EncryptionError."""
    names = [column.name for column in threads.c if column.name != "tenant_id"]
    fields = decrypt_values(tenant, threads, {name: row[name] for name in names})
    thread_id, active, last_seq, last_text = (row[name] for name in ("thread_id", "active_branch", "last_seq", "text"))
    if row["lineage"] is None:
        raise damaged_active_branch(thread_id)
    if type(last_seq) is not int:
        raise damaged_cell(branches, "last_seq", {"thread_id": thread_id, "branch": active})
    (end,) = cut(read_lineage(row["lineage"], thread_id, active), last_seq, last_seq) or (None,)
    if end is not None and end.branch != active:
        last_text = _text_at(sql, tenant, thread_id, end)
    if end is not None and last_text is not None:
        place = {"thread_id": thread_id, "branch": end.branch, "seq": end.first}
        last_text = decrypt_values(tenant, messages, {"text": last_text}, **place)["text"]
    beside = {"revision": fields["revision"] or 0, "message_count": last_seq, "last_text": last_text}
    return to_model(Thread, threads, fields, {**fields, **beside})


def _text_at(sql: Sql, tenant: Tenant, thread_id: str, place: Segment) -> str | Ciphertext | None:
    """The last text of a fork that has no message of its own yet: another branch stores it."""
    own = (messages.c.tenant_id == tenant.name, messages.c.thread_id == thread_id)
    there = (messages.c.branch == place.branch, messages.c.seq == place.first)
    text: str | Ciphertext | None = sql.execute(select(messages.c.text).where(*own, *there)).scalar()
    return text  # None if the thread was deleted meanwhile


def find_thread(sql: Sql, tenant: Tenant, thread_id: str) -> Thread | None:
    row = sql.execute(_select_threads().where(_key(tenant, thread_id))).mappings().one_or_none()
    return None if row is None else _to_thread(sql, tenant, row)


def _find_threads(sql: Sql, tenant: Tenant, thread_ids: Sequence[str]) -> dict[str, Thread]:
    found: dict[str, Thread] = {}
    for at in range(0, len(thread_ids), _IDS_AT_ONCE):
        own = and_(owned(threads, tenant), threads.c.thread_id.in_(thread_ids[at : at + _IDS_AT_ONCE]))
        rows = sql.execute(_select_threads().where(own)).mappings().all()
        found |= {row["thread_id"]: _to_thread(sql, tenant, row) for row in rows}
    return found


_IDS_AT_ONCE = 500


def _complete(sql: Sql, tenant: Tenant, prefix: str, limit: int) -> Sequence[str]:
    last = prefix + "\U0010ffff"  # a range of the primary key; LIKE would read every id of the tenant
    own = (owned(threads, tenant), threads.c.thread_id >= prefix, threads.c.thread_id < last)
    return (
        sql.execute(select(threads.c.thread_id).where(*own).order_by(threads.c.thread_id).limit(limit)).scalars().all()
    )


def require_thread(sql: Sql, tenant: Tenant, thread_id: str, *, lock: bool = False) -> None:
    """Raises ThreadNotFound. With `lock`, others who lock the thread wait until the transaction ends."""
    found = select(threads.c.thread_id).where(_key(tenant, thread_id))
    if sql.execute(found.with_for_update() if lock else found).one_or_none() is None:
        raise ThreadNotFound(thread_id)


def _update_thread(sql: Sql, tenant: Tenant, thread_id: str, values: dict[str, Any]) -> Thread:
    thread = find_thread(sql, tenant, thread_id)
    if thread is None:
        raise ThreadNotFound(thread_id)
    with refusing():
        changed = Thread.model_validate(thread.model_dump() | values)
    if changed.rules in ("strict", "ordered") and changed.rules != thread.rules:
        require_level(sql, tenant, thread_id, changed.rules)
    if "rules" in values:  # the tip caches of other processes hold the earlier rules
        own = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
        sql.execute(update(branches).where(own).values(stamp=new_stamp()))  # before the thread, in an append's order
    if values:
        encrypted = encrypt_values(tenant, threads, values, thread_id=thread_id)
        sql.execute(update(threads).where(_key(tenant, thread_id)).values(**encrypted))
    return changed


def _list_threads(sql: Sql, tenant: Tenant, limit: int, cursor: str | None) -> Page[Thread]:
    statement = _select_threads().where(owned(threads, tenant))
    if cursor is not None:
        active_at, thread_id = read_cursor(cursor, datetime, str)
        place = tuple_(threads.c.active_at, threads.c.thread_id)
        statement = statement.where(place < tuple_(literal(active_at, Moment), literal(thread_id, Key)))
    newest_first = statement.order_by(threads.c.active_at.desc(), threads.c.thread_id.desc())
    rows = sql.execute(newest_first.limit(limit + 1)).mappings().all()
    return to_page(rows, limit, lambda row: _to_thread(sql, tenant, row), "active_at", "thread_id")
