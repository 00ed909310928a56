"""Each call with its result directly behind it, which every provider requires. The pairing is that of the rules.

A call without a result gets the result that `close_open_calls` would store. A result without a call is written as a
user message, since later messages may refer to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.provider import MADE_ID, Provider
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.models import ChatMessage, Part, TextPart, ToolCall
from chatledger.models.base import copy_with
from chatledger.rules import OpenCall, Tip, closing_results
from chatledger.rules.judge import OpenCalls


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
    result_of = [(paired.results.get((position, idx)), idx) for idx in range(len(calls))]
    exchange = Exchange(asker)
    for result, idx in sorted((result, idx) for result, idx in result_of if result is not None):
        if not paired.is_directly_behind(position, result):
            log.add(repairs.MOVED_RESULT, messages[result], "the result does not directly follow its call: moved there")
        exchange.answers.append((idx, messages[result]))
    for unanswered, idx in result_of:
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


# --- Ids --------------------------------------------------------------------------------------------------------------
# Ids that the provider accepts, each on one call of the history and on the result of that call.
#
# The id of a call depends only on the messages before it. A history that grows keeps its ids, and so the provider's
# cache of its beginning stays valid.


def with_ids(items: Sequence[MessageOrExchange], provider: Provider, log: RepairLog) -> list[ChatMessage]:
    """The messages of the items in their order."""
    ids = _Ids(provider, log)
    messages: list[ChatMessage] = []
    for position, item in enumerate(items, 1):
        messages += ids.named(item, position) if isinstance(item, Exchange) else [item]
    return messages


class _Ids:
    def __init__(self, provider: Provider, log: RepairLog) -> None:
        self._provider = provider
        self._log = log
        self._taken: set[str] = set()
        self._copies: dict[str, int] = {}

    def named(self, exchange: Exchange, position: int) -> Iterator[ChatMessage]:
        """The asker and its results under the same ids."""
        if not self._provider.has_ids(exchange.asker):
            yield exchange.asker
            yield from (self._without_id(result, exchange.asker) for _, result in exchange.answers)
            return
        if self._provider.ids_may_come_again:
            self._taken.clear()
        asker, calls = exchange.asker, exchange.asker.tool_calls or []
        ids = [self._id(call, asker, position, idx) for idx, call in enumerate(calls)]
        yield self._with_ids(asker, calls, ids)
        yield from (self._with_id(result, ids[idx]) for idx, result in exchange.answers)

    def _id(self, call: ToolCall, asker: ChatMessage, position: int, idx: int) -> str:
        """The call's id, or its replacement."""
        wanted = call.id
        if wanted is None:
            wanted = f"call_{position if asker.seq is None else asker.seq}_{idx}"
            if self._provider.keeps(asker):  # for a message of another format the writer generates an id
                self._log.add(repairs.CALL_ID, asker, f"call {idx} has no id: written as {wanted!r}")
        id_ = wanted
        if not self._provider.call_ids.fullmatch(wanted):
            id_ = self._free(re.sub(r"[^a-zA-Z0-9_-]", "_", wanted[:MADE_ID])[: MADE_ID - 8] or "call")
            self._log.add(repairs.CALL_ID, asker, f"call id {_short(wanted)} is not accepted: written as {id_!r}")
        elif wanted in self._taken:
            id_ = self._free(wanted[: MADE_ID - 8])
            self._log.add(
                repairs.REUSED_ID, asker, f"call id {_short(wanted)} belongs to an earlier call: written as {id_!r}"
            )
        self._taken.add(id_)
        return id_

    def _free(self, stem: str) -> str:
        """The stem, followed by a number if another call has the stem as its id."""
        free = stem
        while free in self._taken:
            self._copies[stem] = self._copies.get(stem, 1) + 1
            free = f"{stem}_{self._copies[stem]}"
        return free

    def _with_ids(self, asker: ChatMessage, calls: Sequence[ToolCall], ids: Sequence[str]) -> ChatMessage:
        if all(call.id == id_ for call, id_ in zip(calls, ids, strict=True)):
            return asker
        named_calls = [call.model_copy(update={"id": id_}) for call, id_ in zip(calls, ids, strict=True)]
        if any(call.id is None for call in calls):
            return rewritten(asker, tool_calls=named_calls)
        return copy_with(asker, {"tool_calls": named_calls})

    def _with_id(self, result: ChatMessage, id_: str) -> ChatMessage:
        if result.tool_call_id == id_:
            return result
        if result.tool_call_id is None:
            return rewritten(result, tool_call_id=id_)
        return copy_with(result, {"tool_call_id": id_})

    def _without_id(self, result: ChatMessage, asker: ChatMessage) -> ChatMessage:
        if self._provider.is_result_without_id(result):
            return result
        [call] = asker.tool_calls or []
        return rewritten(result, tool_call_id=None, name=call.name, format=None)


def _short(id_: str) -> str:
    return repr(id_ if len(id_) <= 60 else id_[:57] + "…")
