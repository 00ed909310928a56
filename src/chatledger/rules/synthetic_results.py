"""Results for calls that will never get a real one: the only messages that the ledger itself creates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chatledger.models import ChatMessage
from chatledger.rules.judge import Fold, OpenCalls, must_wait
from chatledger.rules.tip import OpenCall, Tip, interrupted

INTERRUPTED = "interrupted"


def closing_results(tip: Tip, *, reason: str = INTERRUPTED) -> list[ChatMessage]:
    """One synthetic tool result for each open call, in the order of the calls, with `reason` as its text.

    The calls of a partial message at the tip are included, since the results interrupt it. If ids repeat, the order
    follows the pairing, so that each result answers its own call.
    """
    return [
        ChatMessage(
            role="tool",
            tool_call_id=call.id,
            name=call.name,
            content=reason,
            is_error=True,
            state="synthetic",
            run_id=tip.turn_run,
        )
        for call in _in_order_of_answers(interrupted(tip).open_calls)
    ]


def _in_order_of_answers(open_calls: tuple[OpenCall, ...]) -> Iterator[OpenCall]:
    """The calls in their order, but each after those of its id that a result answers before it."""
    waiting = OpenCalls(open_calls)
    while (first := waiting.find(None, None)) is not None:
        call = waiting.find(first.id, first.name) or first
        yield call
        waiting.close(call)


def close_gaps(tip: Tip, messages: Sequence[ChatMessage], *, branch: int) -> list[tuple[int, list[ChatMessage]]]:
    """The positions in the batch at which open calls must be closed, and the results that close them.

    Results in the batch count first. The calls that are then still open are closed before the first message that must
    not come while calls are open. Nothing is closed at the end of the batch: real results may still come.
    """
    gaps, fold = [], Fold(tip)
    for index, message in enumerate(messages):
        fold.interrupt()
        if must_wait(fold, message):
            results = closing_results(fold.tip)
            gaps.append((index, results))
            fold = Fold(_closed(fold.tip, results))
        fold.judge(message, branch=branch)
    return gaps


def _closed(tip: Tip, results: Sequence[ChatMessage]) -> Tip:
    """The tip after the results that close all its calls, as if each had been judged."""
    answered = (*tip.answered, *(result.tool_call_id for result in results))
    return Tip(tip.last_seq + len(results), "tool", answered=answered, turn_run=tip.turn_run)
