"""Streams of providers: each event, a dict or an SDK's object, adds to the response.

    stream = get_stream("anthropic")
    pieces = stream.feed(event)             # for each event: its pieces, to be shown or stored at once
    get_codec("anthropic").decode(stream.payload())

The payload equals the provider's response without streaming, so both are stored alike.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from chatledger.errors import DecodeError, LimitExceeded, UnknownFormat
from chatledger.formats.registry import get_codec
from chatledger.formats.streams.base import Read, Stream
from chatledger.models import ChatMessage, Delta, Loss, Usage
from chatledger.models.json import json_bytes

__all__ = ["Read", "ResponseEvents", "Stream", "get_stream", "read_usage", "stream_names"]

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
        raise UnknownFormat(name, f"unknown stream format {name!r}; known formats: {', '.join(stream_names())}")
    module, attribute = _STREAMS[name].split(":")
    stream: Stream = getattr(importlib.import_module(module), attribute)()
    return stream


class ResponseEvents:
    """The events of one response, with the codec that reads the whole response. Raises UnknownFormat.

    `limit` is the maximum number of bytes of the response and of the events that were not understood.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        self._stream = get_stream(name)
        self._codec = get_codec(name)
        self._limit = limit
        self._bytes = 0

    def feed(self, event: object) -> Sequence[Delta]:
        """Take an event, and return the pieces that it adds to the message. Raises DecodeError for a value that is not
        an event, and LimitExceeded; the event then adds nothing.
        """
        plain = self._stream.plain(event)
        added = json_bytes(plain)
        if self._bytes + added <= self._limit:
            self._bytes += added
            return self._stream.take(plain)
        # The end of a response repeats earlier events, so the sum of all events would be too large.
        stream = deepcopy(self._stream)
        deltas = stream.take(plain)
        size = json_bytes(stream.payload()) + json_bytes(stream.unknown)
        if size > self._limit:
            raise LimitExceeded("bytes of a draft", size, self._limit)
        self._stream, self._bytes = stream, size
        return deltas

    def response(self) -> tuple[Sequence[ChatMessage], Sequence[Loss]]:
        """The messages that an append of the whole response would store, and its losses. Raises DecodeError.

        A model's answer must not be lost because a part of its response is malformed. So a response that strict rules
        refuse is read with lenient rules, whatever the level of the thread is.
        """
        payload = self._stream.payload()
        if not payload:
            return (), ()
        try:
            decoded = self._codec.decode(payload)
        except DecodeError:
            decoded = self._codec.decode(payload, rules="lenient")
        return decoded.messages, decoded.losses

    @property
    def usage(self) -> Usage | None:
        return None if self._stream.usage is None else read_usage(self._stream.usage)

    @property
    def finish_reason(self) -> str | None:
        return self._stream.finish_reason

    @property
    def failure(self) -> str | None:
        return self._stream.failure

    @property
    def unknown(self) -> Sequence[object]:
        return self._stream.unknown


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """The counts of a provider's usage object. Every count beside the three totals is in `details`, under its name; a
    count in a nested object such as `prompt_tokens_details` has the name of the object before it, with a dot.

    Anthropic's `input_tokens` do not include the tokens from the cache, which are in `details`.
    """
    counts = dict(_counts(usage))
    input_tokens, output_tokens = [
        next((counts.pop(name) for name in names if name in counts), None)
        for names in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    ]
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=counts.pop("total_tokens", None),
        details=counts or None,
    )


def _counts(usage: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, int]]:
    for name, value in usage.items():
        if isinstance(value, dict):
            yield from _counts(value, f"{before}{name}.")
        elif type(value) is int and 0 <= value < 2**63:
            yield before + name, value
