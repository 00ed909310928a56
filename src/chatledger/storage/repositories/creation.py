"""Creates an empty thread, or returns the one that exists.

`storage/append/create.py::create_thread` inserts its rows, as it does for an append with `create=True`. Whole new
threads come another way: `bulk.py` makes their rows without the database and loads them by COPY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chatledger.errors import IdConflict, ThreadNotFound
from chatledger.models import Thread
from chatledger.storage.append.create import create_thread
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import Creation, Terms, make_request
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.lists.thread_list import find_thread
from chatledger.storage.rows.encryption import Tenant


@dataclass(frozen=True, slots=True)
class Made:
    """`seen` is the preflight of the first append; None if the thread existed already."""

    thread: Thread
    seen: Preflight | None = None


def make_thread(sql: WriteSql, tenant: Tenant, thread: Thread, *, exist_ok: bool) -> Made:
    """Raises IdConflict, or with `exist_ok` ThreadNotFound for a thread of another user, and Erased."""
    existing = find_thread(sql, tenant, thread.thread_id) if exist_ok else None
    if existing is None:
        request = make_request(Terms(tenant.seen_by(thread.user_id)), thread.thread_id, [])
        creation = Creation.of(thread)
        seen = create_thread(sql, replace(request, creation=creation, now=thread.created_at))
        if seen is not None:
            return Made(thread, seen)
        if not exist_ok:
            detail = f"thread {thread.thread_id!r} exists already; exist_ok=True gives it, if it is not another user's"
            raise IdConflict("thread", thread.thread_id, detail)
        existing = find_thread(sql, tenant, thread.thread_id)  # another process was faster
    if existing is None or (thread.user_id is not None and existing.user_id != thread.user_id):
        raise ThreadNotFound(thread.thread_id)
    return Made(existing)
