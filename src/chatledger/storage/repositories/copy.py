"""A path of one thread as the messages of another one, page by page, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from chatledger.errors import InvalidCursor, RuleViolation, StorageError, ThreadNotFound
from chatledger.models import ChatMessage, Thread
from chatledger.models.base import refusing
from chatledger.rules import Tip, judge
from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import make_request
from chatledger.storage.append.write import UPDATE_TIP, plan_rows, tip_columns
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import find_path, load_path
from chatledger.storage.history.window import Window
from chatledger.storage.repositories.bulk import load_rows_of
from chatledger.storage.repositories.creation import Made, make_thread
from chatledger.storage.repositories.owned import own_thread
from chatledger.storage.repositories.thread_list import find_thread
from chatledger.storage.schema.tables import threads

PAGE = 500
"""The most messages that a copy holds at a time."""


def copy_thread(sql: Sql, source: Window, thread_id: str, at: int | None, given: dict[str, Any]) -> Made:
    """Copy the path of the source up to seq `at` (None: all of it), in a transaction that holds the source, so that
    nobody deletes it meanwhile. `given` are fields of the copy in place of those of the source.

    Raises as `ThreadRepository.copy`.
    """
    tenant, of_source = source.tenant, own_thread(source.tenant, source.thread_id)
    held = select(threads.c.thread_id).where(of_source).with_for_update(read=True, key_share=True)
    original = find_thread(sql, tenant, source.thread_id) if sql.execute(held).one_or_none() else None
    if original is None:
        raise ThreadNotFound(source.thread_id)
    now = datetime.now(UTC)
    own = {"thread_id": thread_id, "created_at": now, "active_at": now, **given}
    inherited = original.model_dump(include={"user_id", "kind", "title", "metadata", "rules"})
    with refusing():
        thread = Thread.model_validate({**inherited, **own})
    made = make_thread(sql, tenant, thread, exist_ok=False)
    assert made.seen is not None
    seen = _copy_messages(sql, source, at, thread, made.seen)
    return Made(find_thread(sql, tenant, thread_id) or thread, seen)


def _copy_messages(sql: Sql, source: Window, at: int | None, thread: Thread, made: Seen) -> Seen:
    """Return the preflight of the copy as it then is. Raises BranchNotFound, InvalidCursor, RuleViolation for a message
    that is still partial, and a retryable StorageError if somebody changed or removed messages of the source meanwhile.
    """
    path = find_path(sql, source)
    end = path.last_seq if at is None else at
    if not 0 <= end <= path.last_seq:
        raise InvalidCursor(end, f"branch {path.branch} ends at seq {path.last_seq}; copy it up to seq 0 to that")
    tip = Tip()
    for first in range(1, end + 1, PAGE):
        messages = load_path(sql, source, path, first, min(first + PAGE - 1, end))
        if messages:
            tip = _store(sql, source, thread, messages, tip)
    if (find_path(sql, replace(source, branch=path.branch)).absent or 0) != (path.absent or 0):
        raise StorageError("messages of the source were changed or removed while it was copied", retryable=True)
    request = make_request(source.tenant, thread.thread_id, [], limits=None)
    key = {"tenant": request.tenant.key, "thread": request.thread, "branch": 0}
    sql.fetch(UPDATE_TIP, {**key, "stamp": made.stamp, "new_stamp": made.stamp, **tip_columns(tip)})
    return replace(made, tip=tip)


def _store(sql: Sql, source: Window, thread: Thread, messages: Sequence[ChatMessage], tip: Tip) -> Tip:
    partial = next((message for message in messages if message.state == "partial"), None)
    if partial is not None:
        seq = partial.seq or 0
        detail = f"it is still being written; copy the thread up to seq {seq - 1}, or wait"
        raise RuleViolation("R10", seq, detail, where=f"seq {seq}")
    own = [message.model_copy(update={"run_id": None}) for message in messages]
    request = make_request(source.tenant, thread.thread_id, own, limits=None)
    judgement = judge(tip, request.messages, branch=0, level="lenient")
    # The source recorded what each message broke, a redaction too. Judging it again only finds its call.
    kept = [one._replace(violations=tuple(one.message.violations)) for one in judgement.messages]
    place: tuple[Any, ...] = (request.tenant.key, request.thread, 0)
    for table, rows in plan_rows(request, judgement._replace(messages=kept), 0).items():
        load_rows_of(sql, table, [place + row for row in rows])
    return judgement.tip
