"""R10: a partial message at the end grows, and is then completed or interrupted. The rules allow no other update.

Its position was judged when it was opened. Its content is judged when it is complete, so that the tip and the recorded
violations are the same as after an append of the whole message.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.models import ChatMessage, RulesLevel, Violation
from chatledger.rules.judge import (
    Fold,
    arguments_not_json,
    broken_alone,
    calls_of,
    is_aside,
    refuse_unless_lenient,
    repeated_calls,
)
from chatledger.rules.synthetic_results import INTERRUPTED, closing_results
from chatledger.rules.tip import Tip, interrupted


def grow(tip: Tip, message: ChatMessage, *, branch: int) -> Tip:
    """The tip once its partial message has the content of `message`."""
    grown = tip._replace(partial_calls=calls_of(message, branch, tip.last_seq))
    if is_aside(tip, message) or message.role == "tool":
        return grown
    run = message.run_id if message.role == "assistant" else None
    return grown._replace(turn_run=run if grown.open_calls or grown.partial_calls or grown.answered else None)


def complete(
    tip: Tip, message: ChatMessage, *, branch: int, level: RulesLevel, opened: Sequence[Violation] = ()
) -> tuple[Tip, tuple[Violation, ...]]:
    """The tip after its partial message is completed as `message`, and the violations. Raises RuleViolation.

    `opened` holds the violations recorded when the message was opened. Those of its position still apply.
    """
    broken, not_json = [*broken_alone(message), *repeated_calls(Fold(tip), message)], arguments_not_json(message)
    refuse_unless_lenient(level, 0, broken)
    if level == "ordered":
        refuse_unless_lenient(level, 0, [violation.model_copy(update={"rule": "R13"}) for violation in not_json])
    broken += [violation for violation in opened if violation.rule == "R8"]
    unanswered = [violation for violation in opened if violation.rule in ("R6", "R7")]
    return interrupted(grow(tip, message, branch=branch)), (*broken, *not_json, *unanswered)


def close_interrupted(tip: Tip, messages: Sequence[ChatMessage]) -> tuple[int, list[ChatMessage]]:
    """Answer the calls of the tip's partial message, which the batch interrupts: their position in it, and the results.

    The message was never complete, so its calls get no answer; only results in the batch count. Calls of earlier
    messages may still be running and stay open.
    """
    own = {(call.seq, call.idx) for call in tip.partial_calls}
    fold, index = Fold(interrupted(tip)), 0
    while index < len(messages) and messages[index].role in ("tool", "custom"):
        fold.judge(messages[index], branch=0)
        index += 1
    after = fold.tip
    left = tuple(call for call in after.open_calls if (call.seq, call.idx) in own)
    return index, closing_results(after._replace(open_calls=left), reason=INTERRUPTED)
