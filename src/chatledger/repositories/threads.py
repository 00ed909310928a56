"""Creates, finds, lists and deletes threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, Final

from chatledger.arguments import (
    BOOL,
    BOOL_OR_NONE,
    DICT_OR_NONE,
    INT,
    INT_OR_NONE,
    RULES_OR_NONE,
    STR,
    STR_OR_NONE,
    Kind,
    require,
)
from chatledger.errors import InvalidArgument, ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import ChatMessage, Deleted, Hit, Page, RulesLevel, Thread
from chatledger.models.base import read_moment, refusing
from chatledger.storage.changes.copy import copy_until
from chatledger.storage.changes.deletion import delete_thread, retain
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history.places import read_place
from chatledger.storage.lists.cursors import page_size
from chatledger.storage.lists.search import search
from chatledger.storage.lists.search_scan import SearchRequest
from chatledger.storage.lists.search_text import Query
from chatledger.storage.lists.thread_list import (
    ThreadFilter,
    ThreadOrder,
    ThreadWindow,
    count_matching,
    find_thread,
    list_threads,
)
from chatledger.storage.repositories.counts import count_thread
from chatledger.storage.repositories.creation import make_thread
from chatledger.storage.repositories.threads import ThreadValues, check_keys, judge_rules, update_thread
from chatledger.storage.schema.text import encode_key


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"
    """The argument was not given."""


UNSET: Final = Unset.UNSET
"""The default of arguments for which None is a value: `threads.update` leaves such a field unchanged."""

_STR_OR_UNSET = Kind("a str or None", str, NoneType, Unset)
_DICT_OR_UNSET = Kind("a dict or None", dict, NoneType, Unset)
_BOOL_OR_UNSET = Kind("True or False", bool, Unset)
_RULES_OR_UNSET = Kind(RULES_OR_NONE.expected, NoneType, Unset, words=tuple(RULES_OR_NONE.words))
_ORDER = Kind("'active' or 'created'", words=("active", "created"))


class ThreadRepository:
    """The threads of a tenant, or of a user: `ledger.threads`, and `tx.threads` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def create(
        self,
        thread_id: str | None = None,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        rules: RulesLevel | None = None,
        created_at: datetime | None = None,
        exist_ok: bool = False,
        kind: str | None = None,
    ) -> Thread:
        """Create an empty thread with branch 0, and return it.

            thread = await ledger.user("ada").threads.create(title="Weather", metadata={"channel": "web"})

        The thread belongs to the user of the ledger, `ledger.user("ada")`; without a user it has no owner. The ledger
        makes a `thread_id` if you pass none. The owner and the `kind`, a word of the application's by which lists can
        filter, never change. `rules` is the thread's level; None is the level of the ledger. `created_at` is the
        present time by default, for imports another one, with its zone.

        Raises IdConflict if the thread exists, and Erased if a thread of that id was erased. With `exist_ok=True` it
        returns the existing thread unchanged, or raises ThreadNotFound on a user's ledger if that is not the user's.
        """
        require(STR_OR_NONE, thread_id=thread_id, title=title, kind=kind)
        require(RULES_OR_NONE, rules=rules)
        require(BOOL, exist_ok=exist_ok)
        require(DICT_OR_NONE, metadata=metadata)
        with refusing():
            thread = Thread(
                thread_id=new_id() if thread_id is None else thread_id,
                user_id=self._scope.user_id,
                kind=kind,
                title=title,
                metadata=metadata,
                rules=rules,
                created_at=(now := datetime.now(UTC)) if created_at is None else created_at,
                active_at=now if created_at is None else created_at,
            )
        check_keys(thread)
        created = await self._scope.write(lambda sql: make_thread(sql, self._scope.tenant, thread, exist_ok=exist_ok))
        if created.seen is not None:
            self._scope.learn(encode_key(thread.thread_id, "thread_id"), created.seen)
        return created.thread

    async def copy(
        self,
        source: str,
        thread_id: str | None = None,
        *,
        until: ChatMessage | str | None = None,
        branch: int | None = None,
        title: str | Unset | None = UNSET,
    ) -> Thread:
        """Copy one path of a thread to a new thread, and return it: the messages of the thread `source` up to and
        including `until`, a message or its id (None: all). They get the positions 1, 2, 3 … on branch 0. The branch is
        `branch`, or else the active one, or the one that stores the message if the active one does not have it.

        The owner, kind, metadata, rules and, unless you pass another one, the title are those of the source. The
        messages keep their ids, times and recorded violations; a message id is unique only within a thread. Runs,
        feedback, outputs and everything else stay with the source, so the copied messages name no run. A call without a
        result is open in the copy too.

        One transaction copies all, 1,000 messages at a time, so its cost grows with the path. A SQLite file has no
        other writer until it is done. Raises ThreadNotFound, BranchNotFound, MessageNotFound, IdConflict and Erased,
        RuleViolation if the last message is still being written, and LimitExceeded for more than 20,000 messages or
        128 MiB.
        """
        require(STR, source=source)
        require(STR_OR_NONE, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        require(_STR_OR_UNSET, title=title)
        place = read_place(source, until, named="until")
        copy_id = new_id() if thread_id is None else thread_id
        encode_key(copy_id, "thread_id")
        fields = {} if title is UNSET else {"title": title}
        return await copy_until(self._scope, source, copy_id, place, branch=branch, fields=fields)

    async def get(self, thread_id: str) -> Thread:
        """The thread, with its number of messages and its preview. Raises ThreadNotFound."""
        thread = await self.find(thread_id)
        if thread is None:
            raise ThreadNotFound(thread_id)
        return thread

    async def find(self, thread_id: str) -> Thread | None:
        """The thread, or None if it does not exist."""
        require(STR, thread_id=thread_id)
        return await self._scope.read(lambda sql: find_thread(sql, self._scope.tenant, thread_id))

    async def update(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset | None = UNSET,
        rules: RulesLevel | Unset | None = UNSET,
        archived: bool | Unset = UNSET,
        merge: bool = False,
        expected: int | None = None,
    ) -> Thread:
        """Change the given fields and return the thread. Fields that you do not pass stay; None clears a field. Each
        update of other fields than `archived` increases the `version` of the thread by 1.

        `archived=True` leaves the thread out of `list` and `count` by default, and False shows it again. Nothing else
        changes: it is read and written as before, and an append leaves it archived. A thread that is archived already
        keeps its `archived_at`.

        `merge=True` sets the top-level keys of `metadata` and keeps its other keys. With `expected`, the `version`
        that the caller read, the call raises VersionConflict if another writer updated the thread since.

        Stricter `rules` are first checked against the stored messages, which reads every branch as a whole, and again
        under the thread's lock if one was written to meanwhile; RuleViolation names a message that breaks them, and
        LimitExceeded comes for more than 20,000 messages or 256 MiB. Raises ThreadNotFound.
        """
        require(STR, thread_id=thread_id)
        require(_STR_OR_UNSET, title=title)
        require(_DICT_OR_UNSET, metadata=metadata)
        require(_RULES_OR_UNSET, rules=rules)
        require(_BOOL_OR_UNSET, archived=archived)
        require(BOOL, merge=merge)
        require(INT_OR_NONE, expected=expected)
        if merge and not isinstance(metadata, dict):
            raise InvalidArgument("merge", "needs metadata, the keys to set")
        fields = {"title": title, "metadata": metadata, "rules": rules}
        values = {name: value for name, value in fields.items() if value is not UNSET}
        change = ThreadValues(values, None if archived is UNSET else archived, merge, expected)
        tenant = self._scope.tenant
        if rules is not UNSET and rules is not None:
            judged = await self._scope.read(lambda sql: judge_rules(sql, tenant, thread_id, rules), snapshot=True)
            change = replace(change, judged=judged)
        return await self._scope.write(lambda sql: update_thread(sql, tenant, thread_id, change))

    async def delete(self, thread_id: str, *, dry_run: bool = False) -> Deleted:
        """Delete the thread for good, with its messages, branches, runs, feedback, outputs and values. Returns the
        number of rows by table. The id can be used again, unlike after `erasures.erase`. With `dry_run=True`,
        return the number of rows that would be deleted, and delete nothing.

        One transaction deletes all rows, so its cost grows with the thread. Raises ThreadNotFound.
        """
        require(STR, thread_id=thread_id)
        require(BOOL, dry_run=dry_run)
        tenant = self._scope.tenant
        if dry_run:
            return await self._scope.read(lambda sql: count_thread(sql, tenant, thread_id), snapshot=True)
        return await self._scope.write(lambda sql: delete_thread(sql, tenant, thread_id), removes=True)

    async def delete_inactive(
        self,
        *,
        older_than: timedelta | datetime,
        dry_run: bool = False,
        on_batch: Callable[[Deleted], None] | None = None,
    ) -> Deleted:
        """Delete, for good, the threads without a write since a time (a datetime) or for that long (a timedelta), and
        return the number of rows by table. With `dry_run=True`, return the number of rows that would be deleted, and
        delete nothing.

        Each transaction deletes a few threads, so that no other writer waits long; `on_batch` receives the numbers of
        each. After an interruption, call it again to finish. A thread that gets a write meanwhile stays. Raises
        TenantOnly on a user's ledger.
        """
        require(BOOL, dry_run=dry_run)
        self._scope.refuse_view("threads.delete_inactive")
        return await retain(self._scope, older_than, dry_run=dry_run, on_batch=on_batch)

    async def list(
        self,
        *,
        kind: str | None = None,
        archived: bool | None = False,
        since: datetime | None = None,
        until: datetime | None = None,
        order: ThreadOrder = "active",
        newest_first: bool = True,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Thread]:
        """A page of the threads that match all given filters, newest activity first.

            page = await ledger.user("ada").threads.list(limit=20)
            for thread in page:
                print(thread.title, thread.preview)
            more = await ledger.user("ada").threads.list(limit=20, cursor=page.next_cursor)

        `archived=False` (the default) leaves out archived threads, True returns only those, and None both. `since` and
        `until` compare the last activity, which is exact to a second: a thread active at `since` is included, one
        active at `until` is not. Both are datetimes with a zone. `order="created"` sorts by the time of creation, and
        `newest_first=False` begins at the other end. Threads of the same time are in the order of their ids.

        `limit` is the maximum number of threads, 50 by default and 1,000 at most. `cursor` continues behind the page
        that returned it, in the same order and direction.

        One statement reads a page, with the preview and the count of each thread. An index serves a user's list;
        threads that the other filters leave out are read on the way. The page's `damaged` has the errors of threads
        that cannot be read.

        Raises InvalidCursor, also for the cursor of another order, and LimitExceeded.
        """
        chosen = _filter(self._scope.user_id, kind, archived, since, until)
        require(STR_OR_NONE, cursor=cursor)
        require(INT, limit=limit)
        require(_ORDER, order=order)
        require(BOOL, newest_first=newest_first)
        window = ThreadWindow(order, newest_first, page_size(limit), cursor)
        return await self._scope.read(lambda sql: list_threads(sql, self._scope.tenant, chosen, window))

    async def search(
        self,
        query: str,
        *,
        kind: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[Hit]:
        """The threads whose title or messages contain the query, latest activity first. Each thread is one hit: its
        title, or else its newest message that matches.

        The filters, the page, its bounds and its errors are those of `messages.search`.
        """
        require(STR, query=query)
        require(STR_OR_NONE, kind=kind, cursor=cursor)
        require(INT, limit=limit)
        request = SearchRequest(self._scope.tenant, Query(query), page_size(limit), kind=kind, threads=True)
        return await self._scope.read(lambda sql: search(sql, request, cursor), snapshot=True)

    async def count(
        self,
        *,
        kind: str | None = None,
        archived: bool | None = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """The number of threads that `list` returns with these filters, damaged ones included. One statement reads each
        of them: 10,000 threads take some milliseconds.
        """
        chosen = _filter(self._scope.user_id, kind, archived, since, until)
        return await self._scope.read(lambda sql: count_matching(sql, self._scope.tenant, chosen))


def _filter(
    user_id: str | None,
    kind: str | None,
    archived: bool | None,
    since: datetime | None,
    until: datetime | None,
) -> ThreadFilter:
    """Raises InvalidArgument."""
    require(STR_OR_NONE, kind=kind)
    require(BOOL_OR_NONE, archived=archived)
    moments = read_moment("since", since), read_moment("until", until)
    return ThreadFilter(user_id, kind, archived, *moments)
