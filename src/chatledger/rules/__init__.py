"""What must hold of a thread, as pure functions."""

from chatledger.rules.check import Finding, check_messages
from chatledger.rules.closing import INTERRUPTED, close_before, closing_results
from chatledger.rules.invariants import Judged, Judgement, judge
from chatledger.rules.tip import OpenCall, Tip

__all__ = [
    "INTERRUPTED",
    "Finding",
    "Judged",
    "Judgement",
    "OpenCall",
    "Tip",
    "check_messages",
    "close_before",
    "closing_results",
    "judge",
]
