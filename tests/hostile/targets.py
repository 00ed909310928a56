"""What must hold of the decoders, whatever they are given. A target raises what must not leave them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from chatledger import ChatLedgerError, ChatMessage, FormatError
from chatledger.formats import format_names, get_codec, recognise
from chatledger.models import RulesLevel
from chatledger.storage.rows import encode_message


def recognise_any(payload: Any) -> None:
    with contextlib.suppress(FormatError):
        recognise(payload)


def decode(name: str, payload: Any, rules: RulesLevel) -> list[ChatMessage]:
    """The messages; none if the payload is refused as it should be."""
    try:
        return get_codec(name).decode(payload, rules=rules).messages
    except FormatError:
        return []


def write_everywhere(messages: Sequence[ChatMessage]) -> None:
    """As rows, which may only be refused with an error of ours, and in every format, which must never fail."""
    stored = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    for message in stored:
        with contextlib.suppress(ChatLedgerError):
            encode_message(message)
    for name in format_names() if stored else ():
        get_codec(name).encode(stored)
        get_codec(name).encode(stored, carry=True)
