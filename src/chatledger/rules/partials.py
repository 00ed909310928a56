"""R10: a partial message at the end grows, and is completed or interrupted; that is the only update there is.

Whether it came in its place was judged when it was opened. What it holds is judged when it is complete, so that the
tip, and what is recorded of the message, are those of an append of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.models import ChatMessage, RulesLevel, Violation
from chatledger.rules.invariants import (
    arguments_not_json,
    broken_alone,
    calls_of,
    is_aside,
    judge_one,
    refuse_unless_lenient,
    repeated_calls,
)
from chatledger.rules.synthetic_results import INTERRUPTED, closing_results
from chatledger.rules.tip import Tip, interrupted


def grow(tip: Tip, message: ChatMessage, *, branch: int) -> Tip:
    """The tip when its partial message holds what `message` holds."""
    grown = tip._replace(partial_calls=calls_of(message, branch, tip.last_seq))
    if is_aside(tip, message) or message.role == "tool":
        return grown
    run = message.run_id if message.role == "assistant" else None
    return grown._replace(turn_run=run if grown.open_calls or grown.partial_calls or grown.answered else None)


def complete(
    tip: Tip, message: ChatMessage, *, branch: int, level: RulesLevel, opened: Sequence[Violation] = ()
) -> tuple[Tip, tuple[Violation, ...]]:
    """The tip with its partial message completed as `message`, and what that breaks. Raises RuleViolation.

    `opened` is what was recorded of the message when it was opened: what it broke by coming then, it still breaks.
    """
    broken, not_json = [*broken_alone(message), *repeated_calls(tip, message)], arguments_not_json(message)
    refuse_unless_lenient(level, 0, broken)
    if level == "ordered":
        refuse_unless_lenient(level, 0, [one.model_copy(update={"rule": "R13"}) for one in not_json])
    broken += [violation for violation in opened if violation.rule == "R8"]
    unanswered = [violation for violation in opened if violation.rule in ("R6", "R7")]
    return interrupted(grow(tip, message, branch=branch)), (*broken, *not_json, *unanswered)


def close_interrupted(tip: Tip, messages: Sequence[ChatMessage]) -> tuple[int, list[ChatMessage]]:
    """Where in a batch the calls of the tip's partial message, which it interrupts, are to be answered, and how.

    They were never asked for as a whole, so nobody will answer them; but results that the batch brings count. Calls of
    earlier messages may still be running and are left open.
    """
    own = {(call.seq, call.idx) for call in tip.partial_calls}
    after, index = interrupted(tip), 0
    while index < len(messages) and messages[index].role in ("tool", "custom"):
        after, _ = judge_one(after, messages[index], branch=0, index=index, level="lenient")
        index += 1
    left = tuple(call for call in after.open_calls if (call.seq, call.idx) in own)
    return index, closing_results(after._replace(open_calls=left), reason=INTERRUPTED)
