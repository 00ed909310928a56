"""Erases threads, users and tenants for good, and finds what was erased."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.arguments import BOOL, INT, STR_OR_NONE, require
from chatledger.errors import InvalidArgument
from chatledger.models import Erasure, ErasureKind, Page
from chatledger.storage.changes.erasures import (
    erase_all,
    erase_thread,
    find_tombstone,
    foresee,
    list_tombstones,
)
from chatledger.storage.databases.scope import Scope

Owner: TypeAlias = tuple[Literal["thread"], str] | tuple[Literal["user"], str] | tuple[Literal["tenant"]]
"""What is erased: `("thread", thread_id)`, `("user", user_id)` or `("tenant",)`."""


class ErasureRepository:
    """Erases threads, users and tenants for good: `ledger.erasures`, and `tx.erasures` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def erase(self, owner: Owner, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Delete a thread, all that a user has, or the whole tenant, for good, and return the tombstone.

            await ledger.erasures.erase(("thread", "trip"))
            await ledger.erasures.erase(("user", "ada"), dry_run=True)

        A thread goes with everything that belongs to it, in one transaction, so the cost grows with the thread. From
        then on, creating a thread of that id raises Erased. Erasing it again returns the first tombstone; on a user's
        ledger it raises ThreadNotFound, because a tombstone does not contain the owner of the thread.

        Of a user or a tenant, each thread goes in a transaction of its own. A last one erases the user's feedback on
        other threads (`Feedback.user_id`) and the values of `kv`, and stores the tombstone. After an interruption, call
        it again to finish. New threads and new feedback of the user are not refused.

        `keep_scores=True` keeps the numbers of the current feedback for `feedback.summary`: key, score, agent, model
        and time, but no content and no ids. With `dry_run=True`, nothing is written, and the tombstone has the numbers
        of rows that would be erased. Raises ThreadNotFound, and TenantOnly for the tenant on a user's ledger.
        """
        kind, id_ = self._read(owner)
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        if kind == "tenant":
            self._scope.refuse_view("erasures.erase of the tenant")
        if dry_run:
            return await foresee(self._scope, kind, id_, keep_scores=keep_scores)
        if kind == "thread":
            return await erase_thread(self._scope, id_, keep_scores=keep_scores)
        return await erase_all(self._scope, kind, id_, keep_scores=keep_scores)

    async def find(self, owner: Owner) -> Erasure | None:
        """The newest tombstone of a thread, a user or the tenant; None if there is none. Raises TenantOnly on a user's
        ledger, but for that user.
        """
        kind, id_ = self._read(owner)
        if kind != "user":
            self._scope.refuse_view("erasures.find of a thread or the tenant")
        return await find_tombstone(self._scope, kind, id_)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Erasure]:
        """A page of all tombstones, newest first. `limit` is their maximum number, 50 by default and 1,000 at most. The
        page's `damaged` has the errors of tombstones that cannot be read. Raises InvalidCursor, LimitExceeded, and
        TenantOnly on a user's ledger.
        """
        require(INT, limit=limit)
        require(STR_OR_NONE, cursor=cursor)
        self._scope.refuse_view("erasures.list")
        return await list_tombstones(self._scope, limit, cursor)

    def _read(self, owner: Owner) -> tuple[ErasureKind, str]:
        """The kind and the id of the owner. Raises InvalidArgument, also for another user than that of the ledger."""
        if type(owner) is not tuple or not all(type(name) is str for name in owner):
            raise InvalidArgument("owner", f"{_FORMS}, not {type(owner).__name__}")
        match owner:
            case ("thread", id_):
                return "thread", id_
            case ("user", id_):
                self._scope.tenant.seen_by(id_)
                return "user", id_
            case ("tenant",):
                return "tenant", self._scope.tenant.name
        raise InvalidArgument("owner", _FORMS)


_FORMS = "must be ('thread', thread_id), ('user', user_id) or ('tenant',)"
