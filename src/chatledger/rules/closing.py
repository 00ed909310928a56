"""Results for calls that will never get one: the only messages that the ledger invents."""

from __future__ import annotations

from chatledger.models import ChatMessage
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
