"""Messages as a payload: those of the format itself as they came, those of other origin as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.formats.losses.measure import Written
from chatledger.formats.openai_chat.fit import fit
from chatledger.formats.openai_chat.fit_parts import is_as_read
from chatledger.formats.openai_chat.message import NAME, write_message
from chatledger.formats.wire.pairing import Pairing
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The list that the API takes."""
    pairing = Pairing()
    payload: list[dict[str, Any]] = []
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        answered = pairing.follow(message, index + 1)
        fitted = message if message.format == NAME else fit(message, index + 1, answered)
        if fitted is not None:
            payload.append(write_message(fitted))
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(payload, origins, own, as_read=all(map(_is_as_read, messages)))


def _is_as_read(message: ChatMessage) -> bool:
    """Whether it is one that was read, with nothing in it that a program put there and that nobody reads back."""
    if message.format != NAME or isinstance(message.reasoning, list):
        return False
    for idx, part in enumerate(message.content if isinstance(message.content, list) else ()):
        if not is_as_read(part, nested(message.residual, "parts", str(idx))):
            return False
    return message.tool_calls is None or not any(call.extras for call in message.tool_calls)
