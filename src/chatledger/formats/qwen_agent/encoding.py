"""Messages to rows: those of this format give back their source, all others are split as Qwen-Agent splits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatledger.formats.codec import Encoded
from chatledger.formats.qwen_agent.carrying import with_carried
from chatledger.formats.qwen_agent.rows import NAME, plain_row, row_of
from chatledger.formats.qwen_agent.splitting import split
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import JsonValue
from chatledger.rules import OpenCall, Tip
from chatledger.rules.pairing import answer


def encode_messages(messages: Sequence[ChatMessage], *, carry: bool) -> Encoded:
    rows: list[dict[str, JsonValue]] = []
    losses: list[Loss] = []
    tip = Tip()
    for message in messages:
        tip, result_name = _follow(tip, message)
        if message.format == NAME:
            rows.append(row_of(message))
            continue
        own, lost = _rows_of(message, result_name, carry)
        rows += own
        losses += lost
    return Encoded(rows, losses)


def _rows_of(
    message: ChatMessage, result_name: str | None, carry: bool
) -> tuple[list[dict[str, JsonValue]], list[Loss]]:
    pieces, losses = split(message, result_name=result_name)
    rows = [plain_row(piece) for piece in pieces]
    return (with_carried(rows, message), []) if rows and carry else (rows, losses)


def _follow(tip: Tip, message: ChatMessage) -> tuple[Tip, str | None]:
    """The calls open after the message, and the name of the one that it answers, by the pairing of the rules."""
    seq = tip.last_seq + 1
    call = answer(tip, message)[0] if message.role == "tool" else None
    still_open = tuple(waiting for waiting in tip.open_calls if waiting is not call)
    opened = tuple(OpenCall(0, seq, idx, made.id, made.name) for idx, made in enumerate(message.tool_calls or ()))
    return replace(tip, last_seq=seq, open_calls=still_open + opened), call.name if call else None
