"""A path of one thread as the messages of another one, page by page, so that memory stays bounded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import select

from chatledger.errors import InvalidCursor, RuleViolation, StorageError, ThreadNotFound
from chatledger.models import BACK, ChatMessage, Thread
from chatledger.models.base import refusing
from chatledger.rules import Fold, Judged, Judgement, Links, Tip
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import Terms, make_request
from chatledger.storage.append.write import UPDATE_TIP, plan_rows, tip_columns
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.fold import load_links
from chatledger.storage.history.path import cut, find_path, load_path
from chatledger.storage.history.places import At, seek
from chatledger.storage.history.portions import Allowance, portions
from chatledger.storage.history.window_request import Window
from chatledger.storage.lists.thread_list import find_thread
from chatledger.storage.repositories.bulk import load_rows_of
from chatledger.storage.repositories.creation import Made, make_thread
from chatledger.storage.rows.owned import own_thread
from chatledger.storage.schema.tables import threads
from chatledger.storage.schema.text import encode_key

MOST, MOST_MIB = 20_000, 128
"""The messages that one copy reads, and their size."""
_WAY_OUT = "copy the path up to an earlier seq, or read it with messages.iterate and append that to a new thread"


async def copy_until(
    scope: Scope, source: str, thread_id: str, until: At, *, branch: int | None = None, fields: dict[str, Any]
) -> Thread:
    """Raises as `threads.copy`, and InvalidCursor for a seq that the branch does not have."""
    window = Window.of(scope.tenant, source, branch)
    copied = await scope.write(lambda sql: copy_thread(sql, window, thread_id, until, fields))
    if copied.seen is not None:
        scope.learn(encode_key(thread_id, "thread_id"), copied.seen)
    return copied.thread


def copy_thread(sql: WriteSql, source: Window, thread_id: str, at: At, fields: dict[str, Any]) -> Made:
    """Copy the path of the source up to the place (None: all), in a transaction that locks the source against
    deletion. `fields` are those of the copy that differ from those of the source.

    Raises as `threads.copy`.
    """
    tenant, of_source = source.tenant, own_thread(source.tenant, source.thread_id)
    held = select(threads.c.thread_id).where(of_source).with_for_update(read=True, key_share=True)
    original = find_thread(sql, tenant, source.thread_id) if sql.execute(held).one_or_none() else None
    if original is None:
        raise ThreadNotFound(source.thread_id)
    now = datetime.now(UTC)
    own = {"thread_id": thread_id, "created_at": now, "active_at": now, **fields}
    inherited = original.model_dump(include={"user_id", "kind", "title", "metadata", "rules"})
    with refusing():
        thread = Thread.model_validate({**inherited, **own})
    created = make_thread(sql, tenant, thread, exist_ok=False)
    assert created.seen is not None
    seen = _copy_messages(sql, source, at, thread, created.seen)
    return Made(find_thread(sql, tenant, thread_id) or thread, seen)


def _copy_messages(sql: WriteSql, source: Window, at: At, thread: Thread, created: Preflight) -> Preflight:
    """Return the preflight of the copy as it then is. Raises BranchNotFound, InvalidCursor, RuleViolation for a message
    that is still partial, and a retryable StorageError if messages of the source were changed or removed meanwhile.
    """
    path, end = seek(sql, source, at)
    end = path.last_seq if at is None else end
    if not 0 <= end <= path.last_seq:
        raise InvalidCursor(end, f"branch {path.branch} ends at seq {path.last_seq}; copy it up to seq 0 to that")
    tip = Tip()
    places = CopiedPlaces()
    allowance = Allowance("a copy", MOST, MOST_MIB, _WAY_OUT)
    for _, first, last in list(portions(sql, source.tenant, source.thread, cut(path.segments, 1, end), allowance)):
        sql.go_on()
        messages = load_path(sql, source, path, first, last)
        if messages:
            tip = _store(sql, source, thread, messages, load_links(sql, source, path, first, last), tip, places)
    if (find_path(sql, replace(source, branch=path.branch)).absent or 0) != (path.absent or 0):
        raise StorageError("messages of the source were changed or removed while it was copied", retryable=True)
    request = make_request(Terms(source.tenant), thread.thread_id, [])
    key = {"tenant": request.tenant.key, "thread": request.thread, "branch": 0}
    sql.fetch(UPDATE_TIP, {**key, "stamp": created.stamp, "new_stamp": created.stamp, **tip_columns(tip)})
    absent = None
    if path.absent is not None:  # the results may be paired as no append would pair them, also in the copy
        absent = 0
        sql.fetch(_CHANGED, key)
    return replace(created, tip=tip, absent=absent)


_CHANGED = """
UPDATE {schema}branches SET absent = 0 WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch
"""


class CopiedPlaces:
    """Where the messages of a source with empty positions stand in the copy, which has none. A pair of positions, there
    and here, for each row of messages without an empty position between them.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._last = 0

    def add(self, seq: int) -> int:
        """The place of the message after those that were added before."""
        self._last += 1
        if not self._rows or seq - self._last != self._rows[-1][0] - self._rows[-1][1]:
            self._rows.append((seq, self._last))
        return self._last

    def find(self, seq: int) -> int | None:
        """The place of a message that was added; None for a position without one."""
        row = bisect_right(self._rows, seq, key=itemgetter(0)) - 1
        if row < 0:
            return None
        there, here = self._rows[row]
        end = self._rows[row + 1][1] if row + 1 < len(self._rows) else self._last + 1
        return here + seq - there if here + seq - there < end else None


def _linked(message: ChatMessage, places: CopiedPlaces, place: int) -> ChatMessage:
    """The message with the distance from its new place to the message that it belongs to. If that one is gone, the
    distance leads to no message here either.
    """
    seq = message.seq or 0
    residual = message.residual if isinstance(message.residual, dict) else {}
    back = residual.get(BACK)
    if type(back) is not int:
        return message
    distance = place - (places.find(seq - back) or 0)
    return message.model_copy(update={"residual": {**residual, BACK: distance}})


def _store(
    sql: WriteSql,
    source: Window,
    thread: Thread,
    messages: Sequence[ChatMessage],
    links: Links,
    tip: Tip,
    places: CopiedPlaces,
) -> Tip:
    partial = next((message for message in messages if message.state == "partial"), None)
    if partial is not None:
        seq = partial.seq or 0
        detail = f"it is still being written; copy the thread up to seq {seq - 1}, or wait"
        raise RuleViolation("R10", seq, detail, where=f"seq {seq}")
    tables, tip = apart_from_loop(lambda: _plan(source, thread, messages, links, tip, places))
    for table, rows in tables.items():
        load_rows_of(sql, table, rows)
    return tip


def _plan(
    source: Window, thread: Thread, messages: Sequence[ChatMessage], links: Links, tip: Tip, places: CopiedPlaces
) -> tuple[dict[str, list[tuple[Any, ...]]], Tip]:
    """The rows of the copy, by table, and its tip with them."""
    seqs = [places.add(message.seq or 0) for message in messages]
    own = [
        _linked(message, places, seq).model_copy(update={"run_id": None})
        for message, seq in zip(messages, seqs, strict=True)
    ]
    request = make_request(Terms(source.tenant), thread.thread_id, own)
    fold, judged = Fold(tip), list[Judged]()
    for message, seq in zip(request.messages, seqs, strict=True):
        # The source recorded what each message broke, and which call a result answers. Judging it again might differ.
        link = links.get((message.branch or 0, message.seq or 0))
        answers = None if link is None else fold.open_calls.at((0, places.find(link[1]) or 0, link[2]))
        fold.advance(message, seq, 0, answers)
        judged.append(Judged(message, seq, tuple(message.violations), answers))
    tip = fold.tip
    place: tuple[Any, ...] = (request.tenant.key, request.thread, 0)
    tables = plan_rows(request, Judgement(tip, judged), 0)
    return {table: [place + row for row in rows] for table, rows in tables.items()}, tip
