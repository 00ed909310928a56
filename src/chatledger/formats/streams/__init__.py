"""Streams of providers: an event, as a dict or an SDK's object, gives the pieces of the message that it brings.

An event that adds nothing to the message (usage, the end of a block, a keep-alive) gives none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from chatledger.errors import UnknownFormat
from chatledger.models import Delta

__all__ = ["Read", "get_stream", "stream_names"]

Read = Callable[[Any], Sequence[Delta]]

_STREAMS = {
    "anthropic": "chatledger.formats.streams.deltas.anthropic:AnthropicDeltas",
    "openai-chat": "chatledger.formats.streams.deltas.openai_chat:OpenaiChatDeltas",
    "openai-responses": "chatledger.formats.streams.deltas.openai_responses:OpenaiResponsesDeltas",
}


def stream_names() -> list[str]:
    return sorted(_STREAMS)


def get_stream(name: str) -> Read:
    """A reader of one stream, which may keep state between events. Raises UnknownFormat with the known names."""
    if name not in _STREAMS:
        raise UnknownFormat(name, f"no stream of format {name!r} is known; there are {', '.join(stream_names())}")
    module, attribute = _STREAMS[name].split(":")
    read: Read = getattr(importlib.import_module(module), attribute)()
    return read
