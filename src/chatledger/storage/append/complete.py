"""An append of the message that is partial at the end of its branch: it completes that message in place."""

from __future__ import annotations

from chatledger.errors import IdConflict
from chatledger.ids import new_stamp
from chatledger.models import Appended, ChatMessage
from chatledger.models.trusted import copy_with
from chatledger.rules import complete
from chatledger.storage.append.partial import PartialPlace, PartialWrite, write_partial
from chatledger.storage.append.preflight import Look
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import load_range

_STAYS = ("role", "run_id", "tool_call_id")


def completes_partial(request: AppendRequest, seen: Look) -> bool:
    """Whether the batch is one message, whole now, whose id is that of the partial message at the end."""
    if len(request.messages) != 1 or request.messages[0].state == "partial":
        return False
    if seen.tip is None or seen.branch is None or seen.tip.partial_seq is None:
        return False
    return seen.found.get(request.message_ids[0]) == (seen.branch, seen.tip.partial_seq)


def complete_in_place(sql: Sql, request: AppendRequest, seen: Look) -> Appended | None:
    """None if the branch moved since the look. Raises IdConflict where another message would have to be put there, and
    RuleViolation.
    """
    assert seen.tip is not None
    assert seen.branch is not None
    message, seq = request.whole(0), seen.tip.last_seq
    stored = load_range(sql, request.tenant, request.thread, seen.branch, seq, seq)
    if not stored:
        return None
    _refuse_another(stored[0], message)
    level = request.rules or seen.rules or request.default_rules
    tip, broken = complete(seen.tip, message, branch=seen.branch, level=level, opened=stored[0].violations)
    write = PartialWrite(
        place=PartialPlace(request.tenant, request.thread, seen.branch, seq, request.message_ids[0]),
        stamp=seen.stamp,
        new_stamp=new_stamp(),
        tip=tip,
        encoded=request.rows[0],
        before=None,
        state=message.state,
        violations=broken,
        now=request.now,
    )
    if not write_partial(sql, write):
        return None
    place = {"thread_id": request.thread_id, "branch": seen.branch, "seq": seq}
    whole = copy_with(message, {**place, "created_at": stored[0].created_at, "violations": list(broken)})
    return Appended(seq, seq, seq, [whole])


def _refuse_another(stored: ChatMessage, message: ChatMessage) -> None:
    for name in _STAYS:
        if getattr(stored, name) != getattr(message, name):
            raise IdConflict(stored.message_id or "", stored.seq, f"is partial there, with another {name}")
