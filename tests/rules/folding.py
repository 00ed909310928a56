"""Short ways to judge messages from an empty branch."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger import ChatMessage
from chatledger.models import RulesLevel
from chatledger.rules import Judgement, OpenCall, Tip, judge
from chatledger.types import Violation


def fold(messages: Sequence[ChatMessage], *, level: RulesLevel = "lenient", tip: Tip | None = None) -> Judgement:
    return judge(tip or Tip(), messages, branch=0, level=level)


def find_call(open_calls: tuple[OpenCall, ...], id_: str | None, name: str | None) -> OpenCall | None:
    """The call that a result with this id and name answers, as the rules define it."""
    if id_ is None:
        return next((call for call in open_calls if name is None or call.name == name), None)
    matching = [call for call in open_calls if call.id == id_]
    return next((call for call in matching if (call.branch, call.seq) == (matching[-1].branch, matching[-1].seq)), None)


def tip_of(*messages: ChatMessage) -> Tip:
    return fold(messages).tip


def recorded(judgement: Judgement) -> list[tuple[int, str]]:
    """(seq, rule) of each record."""
    return [(judged.seq, violation.rule) for judged in judgement.messages for violation in judged.violations]


def links(judgement: Judgement) -> list[tuple[int, int] | None]:
    """(seq, idx) of the call that each message answers."""
    return [(call.seq, call.idx) if (call := judged.answers) else None for judged in judgement.messages]


def open_places(tip: Tip) -> list[tuple[int, int]]:
    return [(call.seq, call.idx) for call in tip.open_calls]


def broken(rule: str, detail: str) -> Violation:
    return Violation(rule=rule, detail=detail)


def waiting(seq: int, idx: int, id_: str | None, name: str = "weather") -> OpenCall:
    return OpenCall(branch=0, seq=seq, idx=idx, id=id_, name=name)
