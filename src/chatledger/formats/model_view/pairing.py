"""Each call with its result directly behind it, which every provider requires. The pairing is that of the rules.

A call without a result gets the result that `close_open_calls` would store. A result without a call is written as a
user message, since later messages may refer to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.models import ChatMessage, Part, TextPart
from chatledger.rules import OpenCall, Tip, closing_results
from chatledger.rules.open_calls import OpenCalls


@dataclass(slots=True)
class Exchange:
    """A message with calls and all of their results, each with the index of its call."""

    asker: ChatMessage
    answers: list[tuple[int, ChatMessage]] = field(default_factory=list)


MessageOrExchange: TypeAlias = ChatMessage | Exchange


def pair(messages: Sequence[ChatMessage], log: RepairLog) -> list[MessageOrExchange]:
    """The messages with every result in the exchange of its call."""
    paired = _Pairing(messages)
    items: list[MessageOrExchange] = []
    for position, message in enumerate(messages):
        if message.tool_calls:
            items.append(_exchange(messages, position, paired, log))
        elif message.role != "tool":
            items.append(message)
        elif position not in paired.calls:
            items += _unpaired(message, log, doubled=position in paired.doubled)
    return items


class _Pairing:
    """Which result answers which call, by their positions in the list."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.calls: dict[int, OpenCall] = {}
        self.results: dict[tuple[int, int], int] = {}
        self.doubled: set[int] = set()
        self.others_before = [0, *accumulate(message.role != "tool" for message in messages)]
        waiting = OpenCalls()
        answered: set[str | None] = set()
        for position, message in enumerate(messages):
            if message.role == "user":
                answered.clear()
            if message.role == "tool":
                call = waiting.find(message.tool_call_id, message.name)
                if call is not None:
                    waiting.close(call)
                    answered.add(call.id)
                    self.calls[position] = call
                    self.results[call.seq, call.idx] = position
                elif message.tool_call_id is not None and message.tool_call_id in answered:
                    self.doubled.add(position)
            calls = enumerate(message.tool_calls or ())
            waiting.add(OpenCall(0, position, idx, call.id, call.name) for idx, call in calls)

    def is_directly_behind(self, asker: int, result: int) -> bool:
        """Whether there are only results between the two messages."""
        return self.others_before[result] == self.others_before[asker + 1]


def _exchange(messages: Sequence[ChatMessage], position: int, paired: _Pairing, log: RepairLog) -> Exchange:
    asker = messages[position]
    calls = asker.tool_calls or []
    found = [(paired.results.get((position, idx)), idx) for idx in range(len(calls))]
    exchange = Exchange(asker)
    for result, idx in sorted((result, idx) for result, idx in found if result is not None):
        if not paired.is_directly_behind(position, result):
            log.add(repairs.MOVED_RESULT, messages[result], "the result does not directly follow its call: moved there")
        exchange.answers.append((idx, messages[result]))
    for unanswered, idx in found:
        if unanswered is None:
            call = OpenCall(0, position, idx, calls[idx].id, calls[idx].name)
            log.add(repairs.OPEN_CALL, asker, f"call {idx} ({call.name[:80]}) has no result: answered as interrupted")
            [closing] = closing_results(Tip(open_calls=(call,), turn_run=asker.run_id))
            exchange.answers.append((idx, closing))
    return exchange


def _unpaired(result: ChatMessage, log: RepairLog, *, doubled: bool) -> Iterator[ChatMessage]:
    if doubled:
        log.add(repairs.DOUBLED_RESULT, result, "the call already has a result: left out")
        return
    if not result.content:
        log.add(repairs.ORPHAN_RESULT, result, "an empty result without a call: left out")
        return
    log.add(repairs.ORPHAN_RESULT, result, "a result without a call: written as a user message")
    yield rewritten(result, role="user", content=_as_user_text(result), name=None, tool_call_id=None, is_error=None)


def _as_user_text(result: ChatMessage) -> str | list[Part]:
    of = result.name or result.tool_call_id
    heading = f"[result of a tool call{f' ({of[:80]})' if of else ''}]\n"
    if isinstance(result.content, str):
        return heading + result.content
    return [TextPart(text=heading), *(result.content or ())]
