"""Check a whole stored branch for broken rules, open calls and an abandoned partial message."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from chatledger.models import ChatMessage, ToolCall
from chatledger.rules.judge import Fold, broken_order
from chatledger.rules.tip import OpenCall, Tip

Severity: TypeAlias = Literal["error", "advice"]
"""How serious a finding is. advice: strict rules accept it, but a provider may not."""
ADVICE = frozenset({"R9", "R13"})
"""The rules that strict rules only report: a provider may refuse the messages, but they are stored as they were meant.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a stored branch breaks, or something unfinished at its end.

    Damaged and missing rows break R11, because they are not as they were committed.
    """

    seq: int
    """The position of the message; 0 if the finding is not about a message."""
    rule: str
    """The name of the rule, R1 to R13."""
    detail: str
    """A sentence that says how it is broken."""
    open: bool = False
    """Whether it is unfinished and not broken, so that an append can complete it: a call without a result, or a partial
    message at the end.
    """

    @property
    def severity(self) -> Severity:
        """`advice` for R9 and R13, which strict rules only report, and else `error`."""
        return "advice" if self.rule in ADVICE else "error"


@dataclass(frozen=True, slots=True)
class CheckedThread:
    """A thread that `ledger.check` read, with its findings."""

    thread_id: str | None
    """The thread; None for the values of users and of the tenant, which are in no thread."""
    findings: Sequence[Finding]
    """The broken rules, damaged cells and unfinished calls, in order of seq. Empty if the thread is sound."""


Links: TypeAlias = Mapping[tuple[int, int], tuple[int, int, int]]
"""The calls that stored results answer: by branch and seq of the result, branch, seq and index of the call."""


def fold(tip: Tip, messages: Iterable[ChatMessage], links: Links | None = None) -> Tip:
    """The tip after these stored messages. Each message names the branch that holds it, and stands at its own seq: the
    positions between them may hold no message.

    Without `links`, results are paired as they were when they were appended. If a message was removed since, that may
    be another call: one with the same id, or for a result without an id the first that is open.
    """
    moving = Fold(tip)
    for message in messages:
        branch, seq = message.branch or 0, message.seq or 1
        moving.last_seq = seq - 1
        if links is not None:
            moving.advance(message, seq, branch, moving.open_calls.at(links.get((branch, seq))))
        elif _answers_nothing(message):
            moving.last_seq, moving.last_role = seq, message.role
        else:
            moving.judge(message, branch=branch)
    return moving.tip


def _answers_nothing(message: ChatMessage) -> bool:
    """Whether the message is a result that was stored without a call, or whose call was retracted."""
    is_orphan = message.role == "tool" and any(violation.rule in ("R6", "R7") for violation in message.violations)
    return is_orphan and message.state != "partial"


def check_messages(messages: Iterable[ChatMessage], empty: Container[int] = ()) -> list[Finding]:
    """The findings of a whole branch, R13 included, in order of seq. One pass; holds only open calls and findings.
    `empty` holds the positions that are recorded as holding no message.

    Arguments that are not JSON break both R9 and R13, and are reported once, as the recorded R9.
    """
    moving = Fold(Tip())
    findings: list[Finding] = []
    for message in messages:
        if message.seq is not None and message.seq != moving.last_seq + 1:
            if missing(moving.last_seq, message.seq, empty):
                findings.append(Finding(message.seq, "R2", f"seq {message.seq} follows seq {moving.last_seq}"))
            moving.last_seq = message.seq - 1
        if moving.partial_seq is not None:
            findings.append(Finding(moving.partial_seq, "R10", "partial, but not the last message of the branch"))
            moving.interrupt()
        order = list(broken_order(moving, message))  # before the message moves the tip
        if message.tool_calls and not all(call.name for call in message.tool_calls):
            findings.append(
                Finding(moving.last_seq + 1, "R11", "a tool call without a name, which every level refuses")
            )
            message = message.model_copy(update={"tool_calls": list(map(_named, message.tool_calls))})
        judged = moving.judge(message, branch=message.branch or 0)
        recorded = {violation.detail for violation in judged.violations}
        broken = [*judged.violations, *(violation for violation in order if violation.detail not in recorded)]
        findings += [Finding(judged.seq, violation.rule, violation.detail) for violation in broken]
    findings += [_still_open(call) for call in moving.tip.open_calls]
    if moving.partial_seq is not None:
        findings.append(Finding(moving.partial_seq, "R10", "partial: still being written, or abandoned", open=True))
    return sorted(findings, key=lambda finding: finding.seq)


def missing(before: int, after: int, empty: Container[int]) -> bool:
    """Whether a message is missing between two positions."""
    return after <= before or any(seq not in empty for seq in range(before + 1, after))


def _named(call: ToolCall) -> ToolCall:
    return call if call.name else call.model_copy(update={"name": "?"})


def _still_open(call: OpenCall) -> Finding:
    return Finding(call.seq, "R6", f"call {call.idx} ({call.name}) has no result", open=True)
