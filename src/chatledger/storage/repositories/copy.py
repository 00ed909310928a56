"""A path of one thread as the messages of another one, page by page, so that memory stays bounded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from chatledger.errors import InvalidCursor, RuleViolation, StorageError
from chatledger.models import BACK, ChatMessage, Thread
from chatledger.rules import Tip, judge
from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import make_request
from chatledger.storage.append.write import UPDATE_TIP, plan_rows, tip_columns
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import find_path, load_path
from chatledger.storage.history.window import Window
from chatledger.storage.repositories.bulk import load_rows_of

PAGE = 500
"""The most messages that a copy holds at a time."""


def copy_messages(sql: Sql, source: Window, at: int | None, thread: Thread, made: Seen) -> Seen:
    """Copy the path of the source up to seq `at` (None: all of it) to the thread, which was made in this transaction.
    The caller holds the source, so that nobody deletes it meanwhile. Returns what a preflight would see of the copy.

    Raises BranchNotFound, InvalidCursor, RuleViolation for a message that is still partial, and a retryable
    StorageError if messages of the source were changed or removed meanwhile.
    """
    path = find_path(sql, source)
    end = path.last_seq if at is None else at
    if not 0 <= end <= path.last_seq:
        raise InvalidCursor(end, f"branch {path.branch} ends at seq {path.last_seq}; copy it up to seq 0 to that")
    tip = Tip()
    places = Places() if path.absent else None
    for first in range(1, end + 1, PAGE):
        messages = load_path(sql, source, path, first, min(first + PAGE - 1, end))
        if messages:
            tip = _store(sql, source, thread, messages, tip, places)
    if (find_path(sql, replace(source, branch=path.branch)).absent or 0) != (path.absent or 0):
        raise StorageError("messages of the source were changed or removed while it was copied", retryable=True)
    request = make_request(source.tenant, thread.thread_id, [], limits=None)
    key = {"tenant": request.tenant.key, "thread": request.thread, "branch": 0}
    sql.fetch(UPDATE_TIP, {**key, "stamp": made.stamp, "new_stamp": made.stamp, **tip_columns(tip)})
    return Seen(True, thread.rules, branch=0, tip=tip, stamp=made.stamp, touched=made.touched)


class Places:
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


def _linked(message: ChatMessage, places: Places) -> ChatMessage:
    """The message with the distance from its new place to the message that it belongs to. If that one is gone, the
    distance leads to no message here either.
    """
    seq = message.seq or 0
    place = places.add(seq)
    residual = message.residual if isinstance(message.residual, dict) else {}
    back = residual.get(BACK)
    if type(back) is not int:
        return message
    distance = place - (places.find(seq - back) or 0)
    return message.model_copy(update={"residual": {**residual, BACK: distance}})


def _store(
    sql: Sql, source: Window, thread: Thread, messages: Sequence[ChatMessage], tip: Tip, places: Places | None
) -> Tip:
    partial = next((message for message in messages if message.state == "partial"), None)
    if partial is not None:
        seq = partial.seq or 0
        detail = f"it is still being written; copy the thread up to seq {seq - 1}, or wait"
        raise RuleViolation("R10", seq, detail, where=f"seq {seq}")
    linked = messages if places is None else [_linked(message, places) for message in messages]
    own = [message.model_copy(update={"run_id": None}) for message in linked]
    request = make_request(source.tenant, thread.thread_id, own, limits=None)
    judgement = judge(tip, request.messages, branch=0, level="lenient")
    # The source recorded what each message broke, a redaction too. Judging it again only finds its call.
    kept = [one._replace(violations=tuple(one.message.violations)) for one in judgement.messages]
    place: tuple[Any, ...] = (request.tenant.key, request.thread, 0)
    for table, rows in plan_rows(request, judgement._replace(messages=kept), 0).items():
        load_rows_of(sql, table, [place + row for row in rows])
    return judgement.tip
