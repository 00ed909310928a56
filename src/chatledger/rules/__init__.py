"""What must hold of a thread, as pure functions."""

from chatledger.rules.check import Finding, check_messages, fold
from chatledger.rules.closing import INTERRUPTED, close_gaps, closing_results
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
    "close_gaps",
    "closing_results",
    "fold",
    "judge",
]
