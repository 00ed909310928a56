"""The rules R1 to R13 as a fold: a tip and new messages give a new tip and the violations. README.md lists the rules.

Storage enforces R1, R2, R11 and R12, since it knows the stored ids. This module judges everything that follows from the
tip alone, without a database. The level decides what happens on a violation: lenient keeps the message and records the
violation, strict refuses the message, and ordered refuses violations of R13 as well.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from chatledger.errors import RuleViolation
from chatledger.models import ROLES, ChatMessage, RulesLevel, ToolCall, Violation
from chatledger.rules.tip import OpenCall, Tip


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
    fold, cut_short = Fold(tip), tip.partial_seq
    fold.interrupt()
    judged: list[Judged] = []
    for index, message in enumerate(messages):
        if fold.partial[0] is not None:
            refuse_unless_lenient(level, index, [Violation(rule="R10", detail=_PARTIAL.format(fold.partial_seq))])
            cut = judged[-1].message.model_copy(update={"state": "interrupted"})
            judged[-1] = judged[-1]._replace(message=cut)
            fold.interrupt()
        judged.append(fold.judge(message, branch=branch, index=index, level=level))
    return Judgement(fold.tip, judged, cut_short)


_PARTIAL = "message {} is still partial; complete or interrupt it before anything follows"


class Fold:
    """A tip that moves on with each message. Its fields are those of the tip. Thousands of calls may be open, so each
    is found by an index.
    """

    __slots__ = ("_answered_ids", "answered", "last_role", "last_seq", "lease", "open_calls", "partial", "turn_run")

    def __init__(self, tip: Tip) -> None:
        self.last_seq, self.last_role, self.turn_run, self.lease = tip.last_seq, tip.last_role, tip.turn_run, tip.lease
        self.open_calls = OpenCalls(tip.open_calls)
        self.answered = list(tip.answered)
        self._answered_ids = set(tip.answered)
        self.partial: tuple[int | None, tuple[OpenCall, ...]] = (tip.partial_seq, tip.partial_calls)

    @property
    def partial_seq(self) -> int | None:
        return self.partial[0]

    @property
    def tip(self) -> Tip:
        open_calls, answered = self.open_calls.in_order, tuple(self.answered)
        return Tip(self.last_seq, self.last_role, open_calls, answered, self.turn_run, *self.partial, self.lease)

    def interrupt(self) -> None:
        """The calls of the partial message at the end, if any, are open from now on."""
        if self.partial_seq is not None:
            self.open_calls.add(self.partial[1])
            self.partial, self.lease = (None, ()), None

    def judge(self, message: ChatMessage, *, branch: int, index: int = 0, level: RulesLevel = "lenient") -> Judged:
        """Judge the message, and move behind it. Raises RuleViolation."""
        fields, seq = message.__dict__, self.last_seq + 1  # a model takes twice as long to find an attribute
        broken = broken_alone(message)
        if self.open_calls:
            broken += _broken_in_place(self, message)
        if level == "ordered":
            broken += broken_order(self, message)
        call, problem = self._answer(message) if fields["role"] == "tool" else (None, None)
        recorded = arguments_not_json(message) if fields["tool_calls"] else []
        if broken or recorded or problem is not None:
            problems = [] if problem is None else [problem]
            refuse_unless_lenient(level, index, [*broken, *problems])
            recorded = [*broken, *recorded, *problems]
        self.advance(message, seq, branch, call)
        return Judged(message, seq, tuple(recorded), call)

    def advance(self, message: ChatMessage, seq: int, branch: int, answered: OpenCall | None) -> None:
        """Move behind the message, which answers this call."""
        fields = message.__dict__
        role, run = fields["role"], fields["run_id"]
        aside = role in _ASIDE and is_aside(self, message)
        continues = bool(self.open_calls) and run == self.turn_run
        if answered is not None:
            self.open_calls.close(answered)
        calls = calls_of(message, branch, seq) if fields["tool_calls"] else ()
        if fields["state"] == "partial":
            self.partial = seq, calls
        else:
            self.partial = None, ()
            self.open_calls.add(calls)
        self.last_seq, self.lease = seq, None
        if not aside:
            self.last_role = role
            self._continue_turn(role, run, answered, continues=continues)

    def _continue_turn(self, role: str, run: str | None, answered: OpenCall | None, *, continues: bool) -> None:
        """The answered ids and the run of the turn that a message of this role continues or begins."""
        if role == "tool" and answered is not None:
            self.answered.append(answered.id)
            self._answered_ids.add(answered.id)
        elif role != "tool":
            self.turn_run = run if role == "assistant" else None
            if self.answered and (role != "assistant" or not continues):
                self.answered, self._answered_ids = [], set()
        # The run matters only to open calls. It is stored with them, so the tip in memory must drop it without them.
        if not (self.open_calls or self.partial[1] or self.answered):
            self.turn_run = None

    def _answer(self, result: ChatMessage) -> tuple[OpenCall | None, Violation | None]:
        """The open call that the result answers, or the violation if there is none (R6 and R7)."""
        call = self.open_calls.find(result.tool_call_id, result.name)
        if call is not None:
            return call, None
        wanted = _wanted(result)
        if result.tool_call_id is not None and result.tool_call_id in self._answered_ids:
            return None, Violation(rule="R7", detail=f"the call with {wanted[:80]} already has its result")
        if not self.open_calls:
            return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no call is open")
        return None, Violation(rule="R6", detail=f"a tool result with {wanted[:80]}, but no open call has it")


def _wanted(result: ChatMessage) -> str:
    if result.tool_call_id is not None:
        return f"id {result.tool_call_id!r}"
    return "neither an id nor a name" if result.name is None else f"name {result.name!r}"


def refuse_unless_lenient(level: RulesLevel, index: int, broken: Sequence[Violation]) -> None:
    for violation in broken:
        # A call with an empty name cannot be run or matched, so even an import is refused.
        if level != "lenient" or violation.rule == "R9":
            raise RuleViolation(violation.rule, index, violation.detail)


def broken_alone(message: ChatMessage) -> list[Violation]:
    """The violations of a message that do not depend on earlier messages."""
    broken: list[Violation] = []
    fields = message.__dict__
    role, calls = fields["role"], fields["tool_calls"]
    if role not in ROLES:
        broken.append(Violation(rule="R3", detail=f"unknown role {role!r}"))
    if calls and role != "assistant":
        broken.append(Violation(rule="R4", detail=f"tool calls on a message of role {role!r}"))
    if fields["tool_call_id"] is not None and role != "tool":
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


def _broken_in_place(fold: Fold, message: ChatMessage) -> Iterator[Violation]:
    """The violations of a message that comes while calls are open: R5 for repeated ids, and R8."""
    if message.tool_calls:
        yield from repeated_calls(fold, message)
    if must_wait(fold, message):
        waiting = ", ".join(f"{call.name} ({_short(call.id)})" for call in fold.open_calls.first(3))
        yield Violation(rule="R8", detail=f"{_a(message.role)} message while calls wait for results: {waiting}")


def repeated_calls(fold: Fold, message: ChatMessage) -> Iterator[Violation]:
    for call in message.tool_calls or ():
        if call.id is not None and fold.open_calls.has(call.id):
            yield Violation(rule="R5", detail=f"call id {_short(call.id)} is still open")


def must_wait(fold: Fold, message: ChatMessage) -> bool:
    """R8: whether the message must not come before the results of the open calls."""
    if not fold.open_calls or message.role in ("tool", "custom"):
        return False
    continues = message.role == fold.last_role == "assistant" and message.run_id == fold.turn_run
    return not continues or bool(fold.answered)


def broken_order(fold: Fold, message: ChatMessage) -> Iterator[Violation]:
    """R13: the order that the strictest providers require. The assistant messages of a turn count as one."""
    for not_json in arguments_not_json(message):
        yield Violation(rule="R13", detail=not_json.detail)
    if _is_late_system(fold, message):
        yield Violation(rule="R13", detail=f"{_a(message.role)} message after the conversation began")
    if message.role == "user" and fold.last_role == "user":
        yield Violation(rule="R13", detail="two user messages in a row")


def _is_late_system(fold: Fold | Tip, message: ChatMessage) -> bool:
    return message.role in _SYSTEM and fold.last_role is not None and fold.last_role not in _SYSTEM


_SYSTEM = ("system", "developer")
_ASIDE = ("custom", *_SYSTEM)
"""The roles of messages that may belong to no turn."""


def calls_of(message: ChatMessage, branch: int, seq: int) -> tuple[OpenCall, ...]:
    return tuple([OpenCall(branch, seq, idx, call.id, call.name) for idx, call in enumerate(message.tool_calls or ())])


def is_aside(fold: Fold | Tip, message: ChatMessage) -> bool:
    """Whether the message belongs to no turn, so that it changes only the position."""
    return message.role == "custom" or _is_late_system(fold, message)


_JSON = json.JSONDecoder(parse_int=float)  # int() refuses long numbers, which JSON allows
_SCAN: Callable[[str, int], tuple[object, int]] = _JSON.scan_once  # type: ignore[attr-defined]


def _is_json(call: ToolCall) -> bool:
    if not isinstance(call.arguments, str):
        return True
    try:
        if _SCAN(call.arguments, 0)[1] == len(call.arguments):  # nearly all have no white space around
            return True
    except (StopIteration, ValueError, RecursionError):
        pass
    try:
        _JSON.decode(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _short(id_: str | None) -> str:
    return "no id" if id_ is None else repr(id_ if len(id_) <= 60 else id_[:57] + "…")


def _a(role: str) -> str:
    """The role with its article."""
    return f"{'an' if role[:1] in tuple('aeio') else 'a'} {role}"


# --- R6 and R7: the open call that a result answers -------------------------------------------------------------------

# Ids need not be unique: several providers restart at `call_0` in each reply. So a result with an id answers an open
# call of that id in the latest message that has one, and the first such call there. A result without an id answers the
# first open call of its name, and one without a name the first open call.

Place = tuple[int, int, int]
"""Branch, seq and index of a call."""


class OpenCalls(dict[Place, OpenCall]):
    """The calls that wait for a result, by their places, in their order. Thousands may wait, and each is looked at a
    few times in all.
    """

    def __init__(self, calls: Iterable[OpenCall] = ()) -> None:
        self._all: deque[OpenCall] = deque()
        self._by_name: defaultdict[str, deque[OpenCall]] = defaultdict(deque)
        self._by_id: defaultdict[str | None, list[deque[OpenCall]]] = defaultdict(list)
        self.add(calls)

    @property
    def in_order(self) -> tuple[OpenCall, ...]:
        return tuple(self.values())

    def first(self, count: int) -> list[OpenCall]:
        return list(islice(self.values(), count))

    def at(self, place: Place | None) -> OpenCall | None:
        """The open call at this place."""
        return None if place is None else self.get(place)

    def add(self, calls: Iterable[OpenCall]) -> None:
        """Add the calls of a message."""
        for call in calls:
            self[call[:3]] = call
            self._all.append(call)
            self._by_name[call.name].append(call)
            of_messages = self._by_id[call.id]
            if not of_messages or not self._is_beside(call, of_messages[-1]):
                of_messages.append(deque())
            of_messages[-1].append(call)

    def has(self, id_: str | None) -> bool:
        """Whether a call with this id, or without an id, is open."""
        return self._of_latest_message(id_) is not None

    def find(self, id_: str | None, name: str | None) -> OpenCall | None:
        """The call that a result with this id and name answers."""
        if id_ is not None:
            return self._of_latest_message(id_)
        return self._first(self._all if name is None else self._by_name.get(name, deque()))

    def close(self, call: OpenCall) -> None:
        """The call has a result. The queues drop it when it comes to their front."""
        self.pop(call[:3], None)

    def _of_latest_message(self, id_: str | None) -> OpenCall | None:
        of_messages = self._by_id.get(id_, [])
        while of_messages:
            if (call := self._first(of_messages[-1])) is not None:
                return call
            of_messages.pop()
        return None

    def _first(self, calls: deque[OpenCall]) -> OpenCall | None:
        while calls and calls[0][:3] not in self:
            calls.popleft()
        return calls[0] if calls else None

    @staticmethod
    def _is_beside(call: OpenCall, others: deque[OpenCall]) -> bool:
        return bool(others) and (others[-1].branch, others[-1].seq) == (call.branch, call.seq)
