"""R6 and R7: find the open call that a result answers.

Ids need not be unique: several providers restart at `call_0` in each reply. So a result with an id answers an open call
of that id in the latest message that has one, and the first such call there. A result without an id answers the first
open call of its name, and one without a name the first open call. O(open calls).
"""

from __future__ import annotations

from chatledger.models import ChatMessage, Violation
from chatledger.rules.tip import OpenCall, Tip


def answer(tip: Tip, result: ChatMessage) -> tuple[OpenCall | None, Violation | None]:
    """The open call that the result answers, or the violation if there is none."""
    call = find_call(tip.open_calls, result.tool_call_id, result.name)
    if call is not None:
        return call, None
    wanted = _wanted(result)
    if result.tool_call_id is not None and result.tool_call_id in tip.answered:
        return None, Violation(rule="R7", detail=f"the call with {wanted[:80]} has its result already")
    if not tip.open_calls:
        return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no call is open")
    return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no open call has it")


def _wanted(result: ChatMessage) -> str:
    if result.tool_call_id is not None:
        return f"id {result.tool_call_id!r}"
    return "neither an id nor a name" if result.name is None else f"name {result.name!r}"


def find_call(open_calls: tuple[OpenCall, ...], id_: str | None, name: str | None) -> OpenCall | None:
    """The call that a result with this id and name answers."""
    if id_ is None:
        return next((call for call in open_calls if name is None or call.name == name), None)
    matching = [call for call in open_calls if call.id == id_]
    if not matching:
        return None
    latest = matching[-1]
    return next(call for call in matching if (call.branch, call.seq) == (latest.branch, latest.seq))
