"""Pairs the calls and results of a payload, and gives them ids.

The rules do the pairing, so a result answers the same call in the payload and in the store. Most formats require an id
on every call and every result: a generated id is `call_{seq}_{idx}`; a result that answers no call gets `call_{seq}`,
which no call has.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.models import ChatMessage
from chatledger.rules.judge import OpenCalls
from chatledger.rules.tip import OpenCall


@dataclass(frozen=True, slots=True)
class Answered:
    """The call that a result answers, and the message with the call. Its place is the `seq` of the call."""

    call: OpenCall
    asker: ChatMessage

    @property
    def id(self) -> str:
        """The call's own id, or its generated id."""
        return _id_of(self.asker, self.call)


class Pairing:
    """Follows the messages of one payload in their order. `place` is a message's position in it."""

    def __init__(self) -> None:
        self.open_calls = OpenCalls()
        self._askers: dict[int, ChatMessage] = {}

    def ask(self, message: ChatMessage, place: int) -> list[str]:
        """Note the calls of the message, which are now open. Returns their own or generated ids."""
        if not message.tool_calls:
            return []
        calls = [OpenCall(0, place, idx, call.id, call.name) for idx, call in enumerate(message.tool_calls)]
        self.open_calls.add(calls)
        self._askers[place] = message
        return [_id_of(message, call) for call in calls]

    def answer(self, result: ChatMessage) -> Answered | None:
        """The call that the result answers, which is now closed; None if it answers none."""
        call = self.open_calls.find(result.tool_call_id, result.name)
        if call is None:
            return None
        self.open_calls.close(call)
        return Answered(call, self._askers[call.seq])

    def follow(self, message: ChatMessage, place: int) -> Answered | None:
        """Note the calls of the message; for a result, the call that it answers."""
        self.ask(message, place)
        return self.answer(message) if message.role == "tool" else None


def _id_of(asker: ChatMessage, call: OpenCall) -> str:
    return made_id(asker, call.seq, call.idx) if call.id is None else call.id


def made_id(message: ChatMessage, place: int, idx: int | None = None) -> str:
    seq = place if message.seq is None else message.seq
    return f"call_{seq}" if idx is None else f"call_{seq}_{idx}"
