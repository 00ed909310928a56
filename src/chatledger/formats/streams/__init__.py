"""Streams of providers: each event, as a dict or an SDK's object, adds to the response that the provider gives.

    stream = get_stream("anthropic")
    pieces = stream.feed(event)             # for each event: what it brings, to be shown or stored on the way
    get_codec("anthropic").decode(stream.payload())

The payload is what the provider would have given without streaming, so both are stored alike.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from chatledger.errors import UnknownFormat
from chatledger.formats.registry import get_codec
from chatledger.formats.streams.stream import Read, Stream
from chatledger.models import ChatMessage, Delta, RulesLevel

__all__ = ["Read", "ResponseEvents", "Stream", "get_stream", "stream_names"]

_STREAMS = {
    "anthropic": "chatledger.formats.streams.anthropic:AnthropicStream",
    "openai-chat": "chatledger.formats.streams.openai_chat:OpenaiChatStream",
    "openai-responses": "chatledger.formats.streams.openai_responses:OpenaiResponsesStream",
}


def stream_names() -> list[str]:
    return sorted(_STREAMS)


def get_stream(name: str) -> Stream:
    """A new stream, for one response. Raises UnknownFormat with the known names."""
    if name not in _STREAMS:
        raise UnknownFormat(name, f"no stream of format {name!r} is known; there are {', '.join(stream_names())}")
    module, attribute = _STREAMS[name].split(":")
    stream: Stream = getattr(importlib.import_module(module), attribute)()
    return stream


class ResponseEvents:
    """The events of one response, with the codec that reads the whole response. Raises UnknownFormat."""

    def __init__(self, name: str) -> None:
        self._stream = get_stream(name)
        self._codec = get_codec(name)

    @property
    def failure(self) -> str | None:
        return self._stream.failure

    def feed(self, event: object) -> Sequence[Delta]:
        return self._stream.feed(event)

    def messages(self, rules: RulesLevel) -> Sequence[ChatMessage]:
        """The messages that an append of the whole response would store. Raises DecodeError."""
        return self._codec.decode(self._stream.payload(), rules=rules).messages
