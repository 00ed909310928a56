"""The ids that calls and results have on the wire, where each call needs one and each result names its call's.

An id that there is stays as it is. Pairing is that of the rules, so a result answers on the wire the call that it
answers in the store. A made id is `call_{seq}_{idx}`; a result that answers no call gets `call_{seq}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.anthropic.names import is_result
from chatledger.models import ChatMessage
from chatledger.rules.pairing import answer
from chatledger.rules.tip import OpenCall, Tip


@dataclass(frozen=True, slots=True)
class Linked:
    """A message, its place among those to write, and the ids of its calls, or of the call that it answers."""

    place: int
    message: ChatMessage
    call_ids: tuple[str, ...] = ()
    call_id: str = ""


def link(messages: Sequence[tuple[int, ChatMessage]]) -> list[Linked]:
    """The messages in their order, each with its place."""
    linked: list[Linked] = []
    waiting: tuple[OpenCall, ...] = ()
    ids: dict[tuple[int, int], str] = {}
    for place, message in messages:
        calls = message.tool_calls or ()
        call_ids = tuple(
            _made_id(message, place, idx) if call.id is None else call.id for idx, call in enumerate(calls)
        )
        ids |= {(place, idx): id_ for idx, id_ in enumerate(call_ids)}
        waiting += tuple(OpenCall(0, place, idx, call.id, call.name) for idx, call in enumerate(calls))
        call_id = ""
        if is_result(message):
            answered, _ = answer(Tip(open_calls=waiting), message)
            waiting = tuple(call for call in waiting if call is not answered)
            call_id = _made_id(message, place) if answered is None else ids[answered.seq, answered.idx]
        linked.append(Linked(place, message, call_ids, call_id))
    return linked


def _made_id(message: ChatMessage, place: int, idx: int | None = None) -> str:
    seq = place + 1 if message.seq is None else message.seq
    return f"call_{seq}" if idx is None else f"call_{seq}_{idx}"
