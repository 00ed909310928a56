"""Which call a result answers, within one payload: the pairing of the rules, judging nothing.

Upstream writes the id "1" on a result whose call has none. Such an id names no call, so it is not read as one: the
result then answers the first open call of its name, as every result without an id does.
"""

from __future__ import annotations

from chatledger.models import ChatMessage
from chatledger.rules import OpenCall, Tip
from chatledger.rules.pairing import answer

DEFAULT_ID = "1"


def follow(tip: Tip, message: ChatMessage) -> tuple[Tip, OpenCall | None]:
    """The calls open after the message, and the one that it answers."""
    seq = tip.last_seq + 1
    call = answer(tip, message)[0] if message.role == "tool" else None
    still_open = tuple(waiting for waiting in tip.open_calls if waiting is not call)
    opened = tuple(OpenCall(0, seq, idx, made.id, made.name) for idx, made in enumerate(message.tool_calls or ()))
    return tip._replace(last_seq=seq, open_calls=still_open + opened), call


def has_default_id(tip: Tip, result: ChatMessage) -> bool:
    """Whether the result's id is only upstream's default: no open call has it, and one has none at all."""
    if result.role != "tool" or result.tool_call_id != DEFAULT_ID:
        return False
    ids = {call.id for call in tip.open_calls}
    return None in ids and DEFAULT_ID not in ids
