"""Finds the call that each result of a page answers.

The rules linked results to calls when they were written (R6, R7). This code finds the same call again if the page
shows everything that decided on it. Else it gives no answer: an earlier call may have been open, or a message was
removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from chatledger.models import CallPlace, ChatMessage
from chatledger.storage.rows.decode_messages import Link

_Waiting: TypeAlias = tuple[int, int, str | None, str]
"""The seq, the index, the id and the name of a call that has no result yet."""


def answer_linker(*, complete: bool) -> Link:
    """A function that fills in which call each result answers. It takes the messages of a page in order, in one block
    or in several. `complete` says that the path has a message in each of its positions.
    """
    waiting: dict[str | None, list[_Waiting]] = {}
    expected = 1  # the seq after the last message
    known = complete  # whether no other call than these can be open
    sure_from = 0  # a call before this seq may have its result already

    def link(messages: Sequence[ChatMessage]) -> None:
        nonlocal expected, known, sure_from
        for message in messages:
            fields = message.__dict__  # every history runs this, and an attribute of a model takes three times as long
            seq = fields["seq"]
            if seq != expected:  # a message between is not on the page, or was removed
                sure_from = seq
                known = False
            expected = seq + 1
            role = fields["role"]
            if role == "tool":
                if not fields["violations"] or _is_linked(message):
                    id_ = fields["tool_call_id"]
                    if id_ is None and not known:
                        sure_from = seq
                    else:
                        call = _first(waiting, message.name) if id_ is None else _latest(waiting.get(id_))
                        known = known and call is not None
                        if call is not None and call[0] >= sure_from:
                            waiting[call[2]].remove(call)
                            fields["answers"] = _call_place(call[0], call[1])
            elif role in BEGIN_TURNS and not (fields["violations"] and _interrupts(message)):
                waiting.clear()  # while a call was open, it would have broken R8
                known = complete
            if fields["tool_calls"]:
                for index, tool_call in enumerate(fields["tool_calls"]):
                    called = tool_call.__dict__
                    waiting.setdefault(called["id"], []).append((seq, index, called["id"], called["name"]))

    return link


@lru_cache(maxsize=512)  # threads begin alike, and the places of a page are read again
def _call_place(seq: int, index: int) -> CallPlace:
    return CallPlace(seq=seq, index=index)


BEGIN_TURNS = frozenset({"user", "system", "developer"})


def _interrupts(message: ChatMessage) -> bool:
    """Whether calls were open when the message came."""
    return any(broken.rule == "R8" for broken in message.violations)


def _is_linked(result: ChatMessage) -> bool:
    """Whether the result was linked to a call, which is what lenient rules do unless they record R6 or R7."""
    return not any(violation.rule in ("R6", "R7") for violation in result.violations)


def _latest(calls: Sequence[_Waiting] | None) -> _Waiting | None:
    """The first call of the latest message: that is the one of an id."""
    if not calls or calls[0][0] == calls[-1][0]:  # nearly always
        return calls[0] if calls else None
    return next(call for call in calls if call[0] == calls[-1][0])


def _first(waiting: dict[str | None, list[_Waiting]], name: str | None) -> _Waiting | None:
    """The first call of that name, or the first of all: that is the one of a result without an id."""
    fitting = [call for calls in waiting.values() for call in calls if name is None or call[3] == name]
    return min(fitting, key=itemgetter(0, 1), default=None)
