"""Messages to rows: those of this format give back their source, all others are split as Qwen-Agent splits them."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.losses.measure import Written
from chatledger.formats.qwen_agent.carrying import with_carried
from chatledger.formats.qwen_agent.items import is_as_read
from chatledger.formats.qwen_agent.rows import NAME, plain_row, row_of
from chatledger.formats.qwen_agent.splitting import split
from chatledger.formats.wire.pairing import Pairing
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue


def write_messages(messages: Sequence[ChatMessage], *, carry: bool) -> Written:
    rows: list[dict[str, JsonValue]] = []
    origins: list[tuple[int, ...]] = []
    own: list[int] = []
    pairing = Pairing()
    for index, message in enumerate(messages):
        answered = pairing.answer(message) if message.role == "tool" else None
        pairing.ask(message, index)
        if message.format == NAME:
            rows.append(row_of(message))
            origins.append((index,))
            own.append(index)
            continue
        pieces = _rows_of(message, answered.call.name if answered else None, carry)
        rows += pieces
        origins += [(index,)] * (min(len(pieces), 1) if carry else len(pieces))
    return Written(rows, origins, own, as_read=all(map(_is_as_read, messages)))


def _rows_of(message: ChatMessage, result_name: str | None, carry: bool) -> list[dict[str, JsonValue]]:
    rows = [plain_row(piece) for piece in split(message, result_name=result_name)]
    return with_carried(rows, message) if rows and carry else rows


def _is_as_read(message: ChatMessage) -> bool:
    """Whether it is one that was read, with nothing in it that a program put there and that nobody reads back."""
    calls = message.tool_calls
    if message.format != NAME or (calls is not None and (len(calls) != 1 or calls[0].extras is not None)):
        return False
    if message.tool_call_id is not None and message.role != "tool":
        return False
    both = (message.content, message.reasoning)
    return all(map(is_as_read, (part for parts in both if isinstance(parts, list) for part in parts)))
