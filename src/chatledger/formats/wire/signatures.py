"""Which provider signed the reasoning of a message. A provider takes back only what it signed itself."""

from __future__ import annotations

from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage

ANTHROPIC = "anthropic"
OPENAI = "openai"

_OF_FORMAT = {"anthropic": ANTHROPIC, "openai-responses": OPENAI}
"""The formats that are those of one provider."""
_PROVIDER = "model_provider"
"""The key of `response_metadata` with the provider of a message that a framework brought, as LangChain names it."""


def signer_of(message: ChatMessage) -> str | None:
    """The provider whose signatures the message holds; None if nobody said."""
    if message.format in _OF_FORMAT:
        return _OF_FORMAT[message.format]
    provider = nested(message.response_metadata, _PROVIDER)
    return provider if isinstance(provider, str) else None
