"""Results for calls that will never get one: the only messages that the ledger invents."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.models import ChatMessage
from chatledger.rules.invariants import judge_one, must_wait
from chatledger.rules.tip import Tip

INTERRUPTED = "interrupted"


def closing_results(tip: Tip, *, reason: str = INTERRUPTED) -> list[ChatMessage]:
    """One synthetic tool result for each open call, in the order of the calls, with `reason` as its text."""
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
        for call in tip.open_calls
    ]


def close_before(tip: Tip, messages: Sequence[ChatMessage], *, branch: int) -> tuple[int, list[ChatMessage]]:
    """Where in the batch the open calls must be closed, and the results that close them.

    Results that the batch brings itself come first and count; what then still waits is closed before the first message
    that may not come while calls are open.
    """
    for index, message in enumerate(messages):
        if must_wait(tip, message):
            return index, closing_results(tip)
        tip, _ = judge_one(tip, message, branch=branch, index=index, level="lenient")
    return len(messages), []
