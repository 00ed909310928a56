"""Which provider signed a thought. It checks its signature and takes it back; every other provider refuses it.

A format of one provider says it by its name. A format in front of several says it of a message in `response_metadata`,
or of a thought in its `extras`: the signer under `provider`, and the id that the signer knows it by under `id`.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, ThinkPart

PROVIDER = "provider"
ID = "id"
ANTHROPIC = "anthropic"
GOOGLE = "google"
OPENAI = "openai"

_OF_FORMAT = {"anthropic": ANTHROPIC, "openai-responses": OPENAI}
"""The formats that are those of one provider."""
_OF_MESSAGE = "model_provider"
"""The key of `response_metadata` with the provider of a message that a framework brought, as LangChain names it."""


def signed_by(provider: str | None, id_: str | None = None) -> dict[str, Any] | None:
    """The extras of a thought; None if neither is known."""
    told = {PROVIDER: provider, ID: id_}
    return {key: value for key, value in told.items() if value is not None} or None


def signer_of(message: ChatMessage, part: ThinkPart | None = None) -> str | None:
    """The provider that signed the thought, or all thoughts of the message; None if nobody said."""
    told = None if part is None else nested(part.extras, PROVIDER)
    if told is None:
        told = _OF_FORMAT.get(message.format or "") or nested(message.response_metadata, _OF_MESSAGE)
    return told if isinstance(told, str) else None


def id_of(part: ThinkPart) -> str | None:
    """The id that the signer knows the thought by; None if the thought does not say it."""
    told = nested(part.extras, ID)
    return told if isinstance(told, str) else None
