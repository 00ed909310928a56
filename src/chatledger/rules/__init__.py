"""The rules of a thread, as pure functions."""

from chatledger.rules.check_stored import (
    CheckedThread,
    Finding,
    Links,
    Severity,
    check_messages,
    fold,
    missing,
)
from chatledger.rules.judge import Fold, Judged, Judgement, arguments_not_json, judge
from chatledger.rules.partials import close_interrupted, complete, grow
from chatledger.rules.synthetic_results import INTERRUPTED, close_gaps, closing_results
from chatledger.rules.tip import Lease, OpenCall, Tip, Writer, interrupted

__all__ = [
    "INTERRUPTED",
    "CheckedThread",
    "Finding",
    "Fold",
    "Judged",
    "Judgement",
    "Lease",
    "Links",
    "OpenCall",
    "Severity",
    "Tip",
    "Writer",
    "arguments_not_json",
    "check_messages",
    "close_gaps",
    "close_interrupted",
    "closing_results",
    "complete",
    "fold",
    "grow",
    "interrupted",
    "judge",
    "missing",
]
