"""Messages of the ledger as the dict of a ChatHistory."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.agent_service.carrying import carry
from chatledger.formats.agent_service.keeping import around_of, restore_row
from chatledger.formats.agent_service.sources import MESSAGES, Row
from chatledger.formats.agent_service.words import NAME
from chatledger.formats.agent_service.writing import write
from chatledger.formats.losses.measure import Written
from chatledger.formats.wire.residual import restore
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models.json import same_json

UNSAID = ("name", "is_error")
"""Fields that no row has. A run has its place even in a row that came without one."""


def write_history(messages: Sequence[LedgerMessage], *, carrying: bool) -> Written:
    """The rows in their history. Of what stood around several that were appended one after the other, the last is told;
    that of the others is lost with their residual."""
    told = next((around for message in reversed(messages) if (around := around_of(message)) is not None), None)
    kept = [index for index, message in enumerate(messages) if message.format == NAME and _is_told(message, told)]
    payload = restore({MESSAGES: [_row(message, carrying) for message in messages]}, told)
    as_read = len(kept) == len(messages) and all(map(_is_as_read, messages))
    return Written(payload, [(index,) for index in range(len(messages))], kept, as_read)


def _row(message: LedgerMessage, carrying: bool) -> Row:
    if message.format == NAME:
        return restore_row(message)
    row = write(message)
    return carry(row, message) if carrying else row


def _is_told(message: LedgerMessage, told: Row | None) -> bool:
    around = around_of(message)
    return around is None or same_json(around, told)


def _is_as_read(message: LedgerMessage) -> bool:
    """Whether it is as it was read, with nothing in it that a program put there and that nobody reads back."""
    if message.reasoning is not None or isinstance(message.content, list):
        return False
    if any(held in ([], {}) for held in (message.tool_calls, message.response_metadata, message.custom_data)):
        return False
    return all(call.extras is None for call in message.tool_calls or ())
