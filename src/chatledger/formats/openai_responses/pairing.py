"""Which call a result answers, and under which id both stand on the wire: every call needs one there.

Pairing is that of the rules. A made id is `call_{seq}_{idx}`; a result that answers no call gets `call_{seq}`.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.formats.openai_responses.items import CALL, CUSTOM_CALL, FUNCTION_CALL
from chatledger.formats.openai_responses.message import ITEMS, NAME
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage
from chatledger.rules.pairing import answer
from chatledger.rules.tip import OpenCall, Tip


@dataclass(frozen=True, slots=True)
class Answered:
    """The call of a result: the type that it has on the wire, and its id there."""

    form: str
    id: str


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
        asker = self._askers[call.seq]
        return Answered(_form(asker, call.idx), call.id if call.id is not None else made_id(asker, call.seq, call.idx))


def _form(asker: ChatMessage, idx: int) -> str:
    entries = nested(asker.residual, ITEMS) if asker.format == NAME else None
    calls = [entry for entry in entries or () if nested(entry, "kind") == CALL] if isinstance(entries, list) else []
    return CUSTOM_CALL if idx < len(calls) and calls[idx].get("form") == CUSTOM_CALL else FUNCTION_CALL


def made_id(message: ChatMessage, place: int, idx: int | None = None) -> str:
    seq = place if message.seq is None else message.seq
    return f"call_{seq}" if idx is None else f"call_{seq}_{idx}"
