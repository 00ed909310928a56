"""The ids that calls and results have on the wire, where every call needs one and every result names its call's.

Pairing is that of the rules, so a result answers on the wire the call that it answers in the store. A made id is
`call_{seq}_{idx}`; a result that answers no call gets `call_{seq}`, which no call has.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.formats.openai_chat.message import NAME, is_function_call
from chatledger.models import ChatMessage
from chatledger.rules.pairing import answer
from chatledger.rules.tip import OpenCall, Tip


@dataclass(frozen=True, slots=True)
class Answered:
    """The call of a result: its name, its id on the wire (None if it has none there), whether it is a legacy one."""

    name: str
    id: str | None
    legacy: bool


class Pairing:
    """Follows the messages of one payload in their order. `place` is a message's position in it."""

    def __init__(self) -> None:
        self._open: tuple[OpenCall, ...] = ()
        self._askers: dict[int, ChatMessage] = {}

    def follow(self, message: ChatMessage, place: int) -> Answered | None:
        """Take note of the message's calls; for a result, the call that it answers."""
        if message.tool_calls:
            self._askers[place] = message
            self._open += tuple(
                OpenCall(0, place, idx, call.id, call.name) for idx, call in enumerate(message.tool_calls)
            )
        if message.role != "tool":
            return None
        call, _ = answer(Tip(open_calls=self._open), message)
        if call is None:
            return None
        self._open = tuple(waiting for waiting in self._open if waiting is not call)
        return self._answered(call)

    def _answered(self, call: OpenCall) -> Answered:
        asker = self._askers[call.seq]
        made = None if asker.format == NAME else made_id(asker, call.seq, call.idx)
        return Answered(call.name, call.id if call.id is not None else made, is_function_call(asker))


def made_id(message: ChatMessage, place: int, idx: int | None = None) -> str:
    seq = place if message.seq is None else message.seq
    return f"call_{seq}" if idx is None else f"call_{seq}_{idx}"
