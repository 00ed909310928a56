"""The ids of calls and results in a payload. kosong's calls must have one: a made id is `call_{seq}_{index}`.

Pairing is that of the rules, so a result without an id names the very call that it answers in the store.
"""

from __future__ import annotations

from chatledger.models import ChatMessage
from chatledger.rules.pairing import answer
from chatledger.rules.tip import OpenCall, Tip


class Links:
    """Follows the messages of one payload in their order; `seq` is a message's own, or its place."""

    def __init__(self) -> None:
        self._open: tuple[OpenCall, ...] = ()

    def ask(self, message: ChatMessage, seq: int) -> list[str]:
        """The ids of the message's calls, which are open from here on."""
        calls = message.tool_calls or ()
        self._open += tuple(OpenCall(0, seq, idx, call.id, call.name) for idx, call in enumerate(calls))
        return [_made_id(seq, idx) if call.id is None else call.id for idx, call in enumerate(calls)]

    def answer(self, message: ChatMessage) -> str | None:
        """The id of the call that a result answers; its own if it answers none."""
        call, _ = answer(Tip(open_calls=self._open), message)
        if call is None:
            return message.tool_call_id
        self._open = tuple(other for other in self._open if other is not call)
        return _made_id(call.seq, call.idx) if call.id is None else call.id


def _made_id(seq: int, idx: int) -> str:
    return f"call_{seq}_{idx}"
