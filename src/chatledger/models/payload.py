"""What an append takes: messages, or a payload of a provider or framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chatledger.arguments import STR_OR_NONE, require
from chatledger.models.messages import ChatMessage


@dataclass(frozen=True, slots=True)
class Payload:
    """Messages in a provider's or framework's format, to append or to sync.

    await ledger.messages.append(thread_id, Payload([{"role": "user", "content": "Hi"}], "openai-chat"))
    """

    value: object
    """The list of the format's messages, as dicts or as the framework's objects."""
    format: str | None = None
    """The name of the format. None: the ledger detects it, or raises UnknownFormat."""

    def __post_init__(self) -> None:
        require(STR_OR_NONE, format=self.format)


Messages: TypeAlias = ChatMessage | Sequence[ChatMessage] | Payload
"""What an append takes. A bare text is refused: nobody could say whose it is."""
