"""Streams that are fed, and payloads that are decoded, for a comparison value by value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from chatledger.formats import get_codec
from chatledger.formats.streams import Stream, get_stream

Json = Any
Object = dict[str, Json]
Cut = Callable[[str], list[str]]


def fed(name: str, events: Iterable[object]) -> Stream:
    stream = get_stream(name)
    for event in events:
        stream.feed(event)
    return stream


def decoded(name: str, payload: list[Object]) -> str:
    """The messages as text: with the order of keys, and such that NaN equals NaN."""
    return repr([message.model_dump() for message in get_codec(name).decode(payload).messages])


def assembled(name: str, events: Iterable[object]) -> str:
    """The messages of a stream whose every event is understood."""
    stream = fed(name, events)
    assert stream.unknown == []
    return decoded(name, stream.payload())


def in_halves(text: str) -> list[str]:
    """At least one piece."""
    middle = len(text) // 2
    return [text[:middle], text[middle:]] if middle else [text]


def ordered(value: Json) -> Json:
    """With sorted keys: the classes of an SDK have an order of their own."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(one) for one in value] if isinstance(value, list) else value


def without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value
