"""The rules of a thread, as pure functions."""

from chatledger.rules.check_stored import (
    CheckedThread,
    Finding,
    Links,
    Severity,
    check_messages,
    fold,
    linked_call,
    missing,
)
from chatledger.rules.judge import Judged, Judgement, advance, arguments_not_json, judge, judge_one
from chatledger.rules.partials import close_interrupted, complete, grow
from chatledger.rules.synthetic_results import INTERRUPTED, close_gaps, closing_results
from chatledger.rules.tip import Lease, OpenCall, Tip, interrupted

__all__ = [
    "INTERRUPTED",
    "CheckedThread",
    "Finding",
    "Judged",
    "Judgement",
    "Lease",
    "Links",
    "OpenCall",
    "Severity",
    "Tip",
    "advance",
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
    "judge_one",
    "linked_call",
    "missing",
]
