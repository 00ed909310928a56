"""An append that follows an earlier message: the place of its branch on the path, and the tip that the rules judge on.

At the end of a branch such an append is a plain one. Before the end the messages get a branch of their own, which
shares the path up to that message and becomes the active one, in the write that stores them (`write.py::NewBranch`).
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.errors import MessageNotFound
from chatledger.ids import new_stamp
from chatledger.rules import Tip
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import NewBranch
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.fold import fold_tip
from chatledger.storage.history.path import Path, forked, stands_on, write_lineage
from chatledger.storage.history.window_request import Window
from chatledger.storage.schema.text import decode_text


@dataclass(frozen=True, slots=True)
class Cut:
    """The last shared position of the path, and how many positions up to it hold no message."""

    at: int
    absent: int = 0


def find_other_branch(request: AppendRequest, seen: Preflight) -> int | None:
    """The branch of which the request is a repeat, if an id of its batch stands there and not on the asked branch."""
    places = [place for place in seen.found.values() if not stands_on(seen.path, *place)]
    return places[0][0] if places else None


def find_elsewhere(request: AppendRequest, seen: Preflight) -> int | None:
    """The branch that stores the message, if the call names no branch and the active one does not have the message."""
    if seen.after is None or request.branch is not None or request.expected is not None:
        return None
    branch, seq = seen.after
    return None if stands_on(seen.path, branch, seq) else branch


def find_cut(sql: WriteSql, request: AppendRequest, seen: Preflight) -> Cut | None:
    """The place where the new branch leaves the path; None if no message follows, so that the append is a plain one.

    Raises MessageNotFound for a message that is not on the branch.
    """
    assert request.after is not None
    assert seen.tip is not None
    at, last_seq = _position(request, seen), seen.tip.last_seq
    if not seen.absent:
        if at > last_seq:
            raise _not_found(request, seen, at)
        return Cut(at - 1) if request.after.beside else Cut(at) if at < last_seq else None
    shared, nearest, latest = _count(sql, request, seen, at)
    if nearest != at:  # it was removed
        raise _not_found(request, seen, at)
    if request.after.beside:
        shared, nearest, _ = _count(sql, request, seen, at - 1)
        return Cut(nearest, nearest - shared)
    return Cut(at, at - shared) if latest > at else None


def _position(request: AppendRequest, seen: Preflight) -> int:
    """The seq of the message on the branch; 0 is the place before the first message."""
    assert request.after is not None
    if isinstance(request.after.message, int):
        return request.after.message
    place = seen.after
    if place is None or not stands_on(seen.path, *place):
        elsewhere = "" if place is None else f"on branch {seen.branch}; the message is on branch {place[0]}"
        raise _not_found(request, seen, None if place is None else place[1], elsewhere)
    return place[1]


def _not_found(request: AppendRequest, seen: Preflight, seq: int | None, detail: str = "") -> MessageNotFound:
    assert request.after is not None
    message = request.after.message
    id_ = decode_text(message) if isinstance(message, str) else None
    detail = detail or ("" if id_ else f"on branch {seen.branch}")
    return MessageNotFound(request.thread_id, id_, seq=seq if id_ is None else None, detail=detail)


_COUNT = """
SELECT count(CASE WHEN seq <= :at THEN 1 END), max(CASE WHEN seq <= :at THEN seq END), max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
"""


def _count(sql: WriteSql, request: AppendRequest, seen: Preflight, at: int) -> tuple[int, int, int]:
    """The number of messages up to `at`, the last of them, and the last message of the branch. Runs only for a branch
    with positions that hold no message.
    """
    shared = nearest = latest = 0
    for branch, first, last in seen.path:
        place = {"tenant": request.tenant.key, "thread": request.thread, "branch": branch}
        count, up_to, end = sql.fetch(_COUNT, {**place, "first": first, "last": last, "at": at})[0]
        shared, nearest, latest = shared + count, max(nearest, up_to or 0), max(latest, end or 0)
    return shared, nearest, latest


def branch_off(sql: WriteSql, request: AppendRequest, seen: Preflight, cut: Cut) -> tuple[int, Tip, NewBranch]:
    """The number of the new branch, the tip that the batch is judged on, and the branch that the write makes."""
    assert seen.tip is not None
    assert seen.branch is not None
    window = Window(request.tenant, request.thread, request.thread_id, seen.branch)
    path = Path(seen.branch, seen.tip.last_seq, list(seen.path), seen.stamp, seen.absent)
    number = seen.last_branch + 1
    lineage = write_lineage(forked(path.segments, number, cut.at))
    absent = None if seen.absent is None else cut.absent
    new = NewBranch(lineage, seen.branch, seen.active_branch, new_stamp(), absent)
    return number, fold_tip(sql, window, path, cut.at), new
