"""Messages as a payload: those of the format itself as they came, those of other origin as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.formats.openai_chat import losses
from chatledger.formats.openai_chat.fit import fit, note_fields, note_reasoning
from chatledger.formats.openai_chat.fit_parts import note_unsaid
from chatledger.formats.openai_chat.losses import LossLog
from chatledger.formats.openai_chat.message import NAME, write_message
from chatledger.formats.openai_chat.pairing import Answered, Pairing
from chatledger.models import ChatMessage, Loss, OpaquePart


def write_payload(messages: Sequence[ChatMessage]) -> tuple[list[dict[str, Any]], list[Loss]]:
    """The list that the API takes, and what of the messages it does not say."""
    log, pairing = LossLog(), Pairing()
    payload = []
    for place, message in enumerate(messages, 1):
        log.seq = message.seq
        fitted = _fitted(message, place, pairing.follow(message, place), log)
        if fitted is not None:
            payload.append(write_message(fitted))
    return payload, log.losses


def _fitted(message: ChatMessage, place: int, answered: Answered | None, log: LossLog) -> ChatMessage | None:
    if message.format != NAME:
        return fit(message, place, answered, log)
    _note_added(message, log)
    return message


def _note_added(message: ChatMessage, log: LossLog) -> None:
    """A message that was read has none of these; one that a program made or changed may."""
    note_fields(message, log)
    if isinstance(message.reasoning, list):
        note_reasoning(message, log)
    for idx, part in enumerate(message.content if isinstance(message.content, list) else ()):
        if not isinstance(part, OpaquePart):
            note_unsaid(part, f"content[{idx}]", log)
    for idx, call in enumerate(message.tool_calls or ()):
        if call.extras:
            log.add(losses.FIELD, f"tool_calls[{idx}].extras")
