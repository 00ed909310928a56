"""The rules R1 to R13 as a fold: a tip and new messages give a new tip and the violations. README.md lists the rules.

Storage enforces R1, R2, R11 and R12, since it knows the stored ids. This module judges everything that follows from the
tip alone, without a database. The level decides what happens on a violation: lenient keeps the message and records the
violation, strict refuses the message, and ordered refuses violations of R13 as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from chatledger.errors import RuleViolation
from chatledger.models import ROLES, ChatMessage, RulesLevel, ToolCall, Violation
from chatledger.rules.tip import OpenCall, Tip, interrupted


class Judged(NamedTuple):
    """A judged message: its seq, its violations, and the call that it answers."""

    message: ChatMessage
    seq: int
    violations: tuple[Violation, ...] = ()
    answers: OpenCall | None = None


class Judgement(NamedTuple):
    """A judged batch. `interrupted` is the seq of the stored partial message that the batch interrupts."""

    tip: Tip
    messages: list[Judged]
    interrupted: int | None = None


def judge(tip: Tip, messages: Sequence[ChatMessage], *, branch: int, level: RulesLevel) -> Judgement:
    """Fold the messages into the tip. Raises RuleViolation for the first message that the level refuses.

    The batch interrupts a partial message at the tip. Storage refuses the append before, if that message is live.
    """
    cut_short = tip.partial_seq
    if cut_short is not None:
        tip = interrupted(tip)
    judged: list[Judged] = []
    for index, message in enumerate(messages):
        if tip.partial_seq is not None:
            refuse_unless_lenient(level, index, [Violation(rule="R10", detail=_PARTIAL.format(tip.partial_seq))])
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
    return advance(tip, message, seq, branch, call), Judged(message, seq, tuple(recorded), call)


def refuse_unless_lenient(level: RulesLevel, index: int, broken: Sequence[Violation]) -> None:
    for violation in broken:
        # A call with an empty name cannot be run or matched, so even an import is refused.
        if level != "lenient" or violation.rule == "R9":
            raise RuleViolation(violation.rule, index, violation.detail)


def broken_alone(message: ChatMessage) -> list[Violation]:
    """The violations of a message that do not depend on earlier messages."""
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
            Violation(rule="R5", detail=f"call id {_short(id_)} occurs twice in one message") for id_ in repeated
        )


def arguments_not_json(message: ChatMessage) -> list[Violation]:
    """R9: models do emit arguments that are not JSON. Every level keeps them verbatim and records the violation."""
    return [
        Violation(rule="R9", detail=f"the arguments of tool call {idx} ({call.name}) are not JSON")
        for idx, call in enumerate(message.tool_calls or ())
        if not _is_json(call)
    ]


def _broken_in_place(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    """The violations of a message that comes while calls are open: R5 for repeated ids, and R8."""
    if message.tool_calls:
        yield from repeated_calls(tip, message)
    if must_wait(tip, message):
        waiting = ", ".join(f"{call.name} ({_short(call.id)})" for call in tip.open_calls[:3])
        yield Violation(rule="R8", detail=f"{_a(message.role)} message while calls wait for results: {waiting}")


def repeated_calls(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    open_ids = {call.id for call in tip.open_calls if call.id is not None}
    for call in message.tool_calls or ():
        if call.id in open_ids:
            yield Violation(rule="R5", detail=f"call id {_short(call.id)} is still open")


def must_wait(tip: Tip, message: ChatMessage) -> bool:
    """R8: whether the message must not come before the results of the open calls."""
    if not tip.open_calls or message.role in ("tool", "custom"):
        return False
    continues = message.role == tip.last_role == "assistant" and message.run_id == tip.turn_run
    return not continues or bool(tip.answered)


def broken_order(tip: Tip, message: ChatMessage) -> Iterator[Violation]:
    """R13: the order that the strictest providers require. The assistant messages of a turn count as one."""
    for not_json in arguments_not_json(message):
        yield Violation(rule="R13", detail=not_json.detail)
    if _is_late_system(tip, message):
        yield Violation(rule="R13", detail=f"{_a(message.role)} message after the conversation began")
    if message.role == "user" and tip.last_role == "user":
        yield Violation(rule="R13", detail="two user messages in a row")


def _is_late_system(tip: Tip, message: ChatMessage) -> bool:
    return message.role in _SYSTEM and tip.last_role is not None and tip.last_role not in _SYSTEM


_SYSTEM = ("system", "developer")


def advance(tip: Tip, message: ChatMessage, seq: int, branch: int, answered: OpenCall | None) -> Tip:
    """The tip after the message, which answers this call."""
    open_calls = tip.open_calls
    if answered is not None:
        at = open_calls.index(answered)
        open_calls = open_calls[:at] + open_calls[at + 1 :]
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
    # The run matters only to open calls. It is stored with them, so the tip in memory must drop it without them.
    turn_run = run if open_calls or partial_calls or answered_ids else None
    return Tip(seq, message.role, open_calls, answered_ids, turn_run, partial_seq, partial_calls)


def calls_of(message: ChatMessage, branch: int, seq: int) -> tuple[OpenCall, ...]:
    return tuple([OpenCall(branch, seq, idx, call.id, call.name) for idx, call in enumerate(message.tool_calls or ())])


def is_aside(tip: Tip, message: ChatMessage) -> bool:
    """Whether the message belongs to no turn, so that it changes only the position."""
    return message.role == "custom" or _is_late_system(tip, message)


def _turn(tip: Tip, message: ChatMessage, answered: OpenCall | None) -> tuple[tuple[str | None, ...], str | None]:
    """The answered ids and the run of the turn that the message continues or begins."""
    if message.role == "tool":
        return tip.answered if answered is None else (*tip.answered, answered.id), tip.turn_run
    if message.role != "assistant":
        return (), None
    continues = tip.open_calls and message.run_id == tip.turn_run
    return tip.answered if continues else (), message.run_id


_JSON = json.JSONDecoder(parse_int=float)  # int() refuses long numbers, which JSON allows


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


# --- R6 and R7: the open call that a result answers -------------------------------------------------------------------

# Ids need not be unique: several providers restart at `call_0` in each reply. So a result with an id answers an open
# call of that id in the latest message that has one, and the first such call there. A result without an id answers the
# first open call of its name, and one without a name the first open call. O(open calls).


def answer(tip: Tip, result: ChatMessage) -> tuple[OpenCall | None, Violation | None]:
    """The open call that the result answers, or the violation if there is none."""
    call = find_call(tip.open_calls, result.tool_call_id, result.name)
    if call is not None:
        return call, None
    wanted = _wanted(result)
    if result.tool_call_id is not None and result.tool_call_id in tip.answered:
        return None, Violation(rule="R7", detail=f"the call with {wanted[:80]} already has its result")
    if not tip.open_calls:
        return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no call is open")
    return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no open call has it")


def _wanted(result: ChatMessage) -> str:
    if result.tool_call_id is not None:
        return f"id {result.tool_call_id!r}"
    return "neither an id nor a name" if result.name is None else f"name {result.name!r}"


_ID = attrgetter("id")


def find_call(open_calls: tuple[OpenCall, ...], id_: str | None, name: str | None) -> OpenCall | None:
    """The call that a result with this id and name answers."""
    if id_ is None:
        return next((call for call in open_calls if name is None or call.name == name), None)
    ids = [*map(_ID, open_calls)]
    count = ids.count(id_)
    if count < 2:  # nearly always, and thousands of calls may be open
        return open_calls[ids.index(id_)] if count else None
    matching = [call for call in open_calls if call.id == id_]
    latest = matching[-1]
    return next(call for call in matching if (call.branch, call.seq) == (latest.branch, latest.seq))


def _a(role: str) -> str:
    """The role with its article."""
    return f"{'an' if role[:1] in tuple('aeio') else 'a'} {role}"
