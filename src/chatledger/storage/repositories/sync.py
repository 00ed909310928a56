"""Comparing a history that a service sends whole with the one that is stored."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import VersionConflict
from chatledger.models import ChatMessage, History
from chatledger.storage.rows.messages import encode_message


def following(history: History, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages that come after all that is stored. Raises VersionConflict at the first that differs.

    Synthetic results are the ledger's own: a sender that does not know them may leave them out.
    """
    position = 0
    for stored in history.messages:
        if position < len(messages) and _same(stored, messages[position]):
            position += 1
        elif stored.state != "synthetic":
            differs = f"message {position} of the batch differs from seq {stored.seq}"
            missing = f"the batch ends before seq {stored.seq}"
            detail = differs if position < len(messages) else missing
            raise VersionConflict(history.thread_id, history.branch, position, history.version, detail)
    return list(messages[position:])


def _same(stored: ChatMessage, given: ChatMessage) -> bool:
    """By content, and by id and run where the sender says them."""
    filled = {name: getattr(stored, name) for name in ("message_id", "run_id") if getattr(given, name) is None}
    return encode_message(stored) == encode_message(given.model_copy(update=filled))
