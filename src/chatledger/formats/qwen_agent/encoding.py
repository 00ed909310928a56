"""Messages to rows: those of this format give back their source, all others are split as Qwen-Agent splits them."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.codec import Encoded
from chatledger.formats.qwen_agent.carrying import with_carried
from chatledger.formats.qwen_agent.linking import follow
from chatledger.formats.qwen_agent.rows import NAME, plain_row, row_of
from chatledger.formats.qwen_agent.splitting import split
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import JsonValue
from chatledger.rules import Tip


def encode_messages(messages: Sequence[ChatMessage], *, carry: bool) -> Encoded:
    rows: list[dict[str, JsonValue]] = []
    losses: list[Loss] = []
    tip = Tip()
    for message in messages:
        tip, call = follow(tip, message)
        if message.format == NAME:
            rows.append(row_of(message))
            continue
        own, lost = _rows_of(message, call.name if call else None, carry)
        rows += own
        losses += lost
    return Encoded(rows, losses)


def _rows_of(
    message: ChatMessage, result_name: str | None, carry: bool
) -> tuple[list[dict[str, JsonValue]], list[Loss]]:
    pieces, losses = split(message, result_name=result_name)
    rows = [plain_row(piece) for piece in pieces]
    return (with_carried(rows, message), []) if rows and carry else (rows, losses)
