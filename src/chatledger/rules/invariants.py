"""The invariants R1 to R13 (design section 8) as a fold: a tip and new messages give a new tip and what they break.

R1, R2, R11 and R12 are held by the storage, which knows the stored ids; everything that can be judged from the tip
alone is judged here, without a database. A rule reports what a message breaks; what then happens depends on the level:
lenient keeps the message with a record, strict refuses, ordered refuses R13 as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chatledger.errors import RuleViolation
from chatledger.models import ROLES, ChatMessage, RulesLevel, ToolCall, Violation
from chatledger.rules.pairing import answer
from chatledger.rules.tip import OpenCall, Tip, interrupted


class Judged(NamedTuple):
    """One message as it will stand: its seq, what it breaks, and the call it answers."""

    message: ChatMessage
    seq: int
    violations: tuple[Violation, ...] = ()
    answers: OpenCall | None = None


class Judgement(NamedTuple):
    """A batch as it will stand. `interrupted` is the seq of a stored partial message that this batch cuts short."""

    tip: Tip
    messages: list[Judged]
    interrupted: int | None = None


def judge(
    tip: Tip, messages: Sequence[ChatMessage], *, branch: int, level: RulesLevel, interrupt: bool = False
) -> Judgement:
    """Fold the messages into the tip. Raises RuleViolation for the first message that the level refuses.

    `interrupt` cuts a partial message at the tip short, whatever the level.
    """
    cut_short = tip.partial_seq if interrupt else None
    if interrupt:
        tip = interrupted(tip)
    judged: list[Judged] = []
    for index, message in enumerate(messages):
        if tip.partial_seq is not None:
            refuse_unless_lenient(level, index, [Violation(rule="R10", detail=_PARTIAL.format(tip.partial_seq))])
            if index == 0:
                cut_short = tip.partial_seq
            else:  # the partial is of this very batch, so it is stored as interrupted from the start
                cut = judged[-1].message.model_copy(update={"state": "interrupted"})
                judged[-1] = judged[-1]._replace(message=cut)
            tip = interrupted(tip)
        tip, one = judge_one(tip, message, branch=branch, index=index, level=level)
        judged.append(one)
    return Judgement(tip, judged, cut_short)


_PARTIAL = "message {} is still partial; complete or interrupt it before anything follows"


def judge_one(tip: Tip, message: ChatMessage, *, branch: int, index: int, level: RulesLevel) -> tuple[Tip, Judged]:
    seq = tip.last_seq + 1
    broken = broken_alone(message)
    if tip.open_calls:
        broken += _broken_in_place(tip, message)
    if level == "ordered":
        broken += broken_order(tip, message)
    call, problem = answer(tip, message) if message.role == "tool" else (None, None)
    recorded = arguments_not_json(message) if message.tool_calls else []
    if broken or recorded or problem is not None:
        problems = [] if problem is None else [problem]
        refuse_unless_lenient(level, index, [*broken, *problems])
        recorded = [*broken, *recorded, *problems]
    return _advance(tip, message, seq, branch, call), Judged(message, seq, tuple(recorded), call)


def refuse_unless_lenient(level: RulesLevel, index: int, broken: Sequence[Violation]) -> None:
    for violation in broken:
        # A call with an empty name is nothing that anyone could run or match, so not even an import brings one in.
        if level != "lenient" or violation.rule == "R9":
            raise RuleViolation(violation.rule, index, violation.detail)


def broken_alone(message: ChatMessage) -> list[Violation]:
    """What a message breaks whatever stands before it."""
    broken = []
    role, calls = message.role, message.tool_calls
    if role not in ROLES:
        broken.append(Violation(rule="R3", detail=f"unknown role {role!r}"))
    if calls and role != "assistant":
        broken.append(Violation(rule="R4", detail=f"tool calls on a message of role {role!r}"))
    if message.tool_call_id is not None and role != "tool":
        broken.append(Violation(rule="R4", detail=f"a tool_call_id on a message of role {role!r}"))
    if calls:
        broken += _broken_calls(calls)
    return broken


def _broken_calls(calls: Sequence[ToolCall]) -> Iterator[Violation]:
    for idx, call in enumerate(calls):
        if not call.name:
            yield Violation(rule="R9", detail=f"tool call {idx} has an empty name")
    ids = [call.id for call in calls if call.id is not None]
    if len(set(ids)) < len(ids):
        repeated = [id_ for id_, count in Counter(ids).items() if count > 1]
        yield from (
            Violation(rule="R5", detail=f"call id {_short(id_)} stands twice in one message") for id_ in repeated
        )


def arguments_not_json(message: ChatMessage) -> list[Violation]:
    """R9: models really emit arguments that are not JSON, so they are kept verbatim at every level, with a record."""
    return [
        Violation(rule="R9", detail=f"the arguments of tool call {idx} ({call.name}) are not JSON")
        for idx, call in enumerate(message.tool_calls or ())
        if not _is_json(call)
    ]


def _broken_in_place(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    """What a message breaks by coming while calls are open: R5 among them, and R8."""
    if message.tool_calls:
        yield from repeated_calls(tip, message)
    if must_wait(tip, message):
        waiting = ", ".join(f"{call.name} ({_short(call.id)})" for call in tip.open_calls[:3])
        yield Violation(rule="R8", detail=f"a {message.role} message while calls wait for results: {waiting}")


def repeated_calls(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    open_ids = {call.id for call in tip.open_calls if call.id is not None}
    for call in message.tool_calls or ():
        if call.id in open_ids:
            yield Violation(rule="R5", detail=f"call id {_short(call.id)} is still open")


def must_wait(tip: Tip, message: ChatMessage) -> bool:
    """R8: whether the message may not come before the open calls have their results."""
    if not tip.open_calls or message.role in ("tool", "custom"):
        return False
    continues = message.role == tip.last_role == "assistant" and message.run_id == tip.turn_run
    return not continues or bool(tip.answered)


def broken_order(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    """R13: what the strictest providers ask for. A turn's assistant messages count as one."""
    for not_json in arguments_not_json(message):
        yield Violation(rule="R13", detail=not_json.detail)
    if _is_late_system(tip, message):
        yield Violation(rule="R13", detail=f"a {message.role} message after the conversation began")
    if message.role == "user" and tip.last_role == "user":
        yield Violation(rule="R13", detail="two user messages in a row")


def _is_late_system(tip: Tip, message: ChatMessage) -> bool:
    return message.role in _SYSTEM and tip.last_role is not None and tip.last_role not in _SYSTEM


_SYSTEM = ("system", "developer")


def _advance(tip: Tip, message: ChatMessage, seq: int, branch: int, answered: OpenCall | None) -> Tip:
    open_calls = tip.open_calls
    if answered is not None:
        open_calls = tuple([call for call in open_calls if call is not answered])
    calls = calls_of(message, branch, seq) if message.tool_calls else ()
    partial_seq, partial_calls = None, calls
    if message.state == "partial":
        partial_seq = seq
    else:
        open_calls, partial_calls = open_calls + calls, ()
    if is_aside(tip, message):
        return tip._replace(
            last_seq=seq, open_calls=open_calls, partial_seq=partial_seq, partial_calls=partial_calls, lease=None
        )
    answered_ids, run = _turn(tip, message, answered)
    # The run only matters to open calls, and as it is stored with them it must be the same in memory.
    turn_run = run if open_calls or partial_calls or answered_ids else None
    return Tip(seq, message.role, open_calls, answered_ids, turn_run, partial_seq, partial_calls)


def calls_of(message: ChatMessage, branch: int, seq: int) -> tuple[OpenCall, ...]:
    return tuple([OpenCall(branch, seq, idx, call.id, call.name) for idx, call in enumerate(message.tool_calls or ())])


def is_aside(tip: Tip, message: ChatMessage) -> bool:
    """Whether the message is part of no turn, so that it moves nothing but the position."""
    return message.role == "custom" or _is_late_system(tip, message)


def _turn(tip: Tip, message: ChatMessage, answered: OpenCall | None) -> tuple[tuple[str | None, ...], str | None]:
    """(the ids answered so far, the run) of the turn that the message continues or begins."""
    if message.role == "tool":
        return tip.answered if answered is None else (*tip.answered, answered.id), tip.turn_run
    if message.role != "assistant":
        return (), None
    continues = tip.open_calls and message.run_id == tip.turn_run
    return tip.answered if continues else (), message.run_id


_JSON = json.JSONDecoder(parse_int=float)  # int() refuses long numbers, which JSON does not


def _is_json(call: ToolCall) -> bool:
    if not isinstance(call.arguments, str):
        return True
    try:
        _JSON.decode(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _short(id_: str | None) -> str:
    return "no id" if id_ is None else repr(id_ if len(id_) <= 60 else id_[:57] + "…")
