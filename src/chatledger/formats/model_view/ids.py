"""Ids that the provider accepts, each on one call of the history and on the result of that call.

The id of a call depends only on the messages before it. A history that grows keeps its ids, and so the provider's cache
of its beginning stays valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.pairing import Exchange, MessageOrExchange
from chatledger.formats.model_view.provider import MADE_ID, Provider
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.models import ChatMessage, ToolCall
from chatledger.models.trusted import copy_with


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
        given = wanted
        if not self._provider.call_ids.fullmatch(wanted):
            given = self._free(re.sub(r"[^a-zA-Z0-9_-]", "_", wanted[:MADE_ID])[: MADE_ID - 8] or "call")
            self._log.add(repairs.CALL_ID, asker, f"call id {_short(wanted)} is not accepted: written as {given!r}")
        elif wanted in self._taken:
            given = self._free(wanted[: MADE_ID - 8])
            self._log.add(
                repairs.REUSED_ID, asker, f"call id {_short(wanted)} belongs to an earlier call: written as {given!r}"
            )
        self._taken.add(given)
        return given

    def _free(self, stem: str) -> str:
        """The stem, followed by a number if another call has the stem as its id."""
        given = stem
        while given in self._taken:
            self._copies[stem] = self._copies.get(stem, 1) + 1
            given = f"{stem}_{self._copies[stem]}"
        return given

    def _with_ids(self, asker: ChatMessage, calls: Sequence[ToolCall], ids: Sequence[str]) -> ChatMessage:
        if all(call.id == id_ for call, id_ in zip(calls, ids, strict=True)):
            return asker
        given = [call.model_copy(update={"id": id_}) for call, id_ in zip(calls, ids, strict=True)]
        if any(call.id is None for call in calls):
            return rewritten(asker, tool_calls=given)
        return copy_with(asker, {"tool_calls": given})

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
