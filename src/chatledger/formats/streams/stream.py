"""The stream of one response: the payload that the provider would have given whole, assembled from its events.

The codec of the format reads that payload, so a streamed response is stored as an append of the whole one stores it. An
event that cannot be understood is put aside: it changes nothing of what came before it or comes after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

from chatledger.errors import DecodeError
from chatledger.formats.streams.events import MAX_DEPTH, Event, plain_event, require
from chatledger.formats.streams.tree import Object
from chatledger.models import Delta
from chatledger.models.json import json_problem

Read: TypeAlias = Callable[[Event], Sequence[Delta]]
"""Gives the pieces of the message that an event brings."""


class Stream(ABC):
    """One response that comes in events.

    `usage` is the provider's object, `finish_reason` its word for why the response ended. `failure` says why the
    provider gave the stream up; it is None while it did not. `unknown` has the events that were not understood.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._unknown: list[Event] = []
        self.usage: Object | None = None
        self.finish_reason: str | None = None
        self.failure: str | None = None

    @property
    def unknown(self) -> Sequence[Event]:
        """The events that were not understood, whole and in their order."""
        return self._unknown

    def feed(self, value: object) -> Sequence[Delta]:
        """Take an event. Returns the pieces of the message that it brings, as far as these can be told.

        Raises DecodeError for a value that is no dict and dumps none, and for nothing else.
        """
        return self.take(self.plain(value))

    def plain(self, value: object) -> Event:
        """The event as a dict. Raises DecodeError."""
        try:
            return self._plain(value)
        except DecodeError:
            if not isinstance(value, dict):
                raise
            return value  # an object inside of it dumps nothing, so it is put aside

    def take(self, event: Event) -> Sequence[Delta]:
        """Take an event that is a dict."""
        try:
            problem = json_problem(event, max_depth=MAX_DEPTH)
            require(problem is None, *(problem or ("", "")))
            self._take(event)
        except DecodeError:
            self._unknown.append(event)
            return ()
        try:
            return self._read(event)
        except DecodeError:
            return ()

    def _plain(self, value: object) -> Event:
        return plain_event(value)

    @abstractmethod
    def payload(self) -> list[Object]:
        """The response so far, for the codec of the format; empty if nothing came. The codec can decode it at any time,
        because a call without a name is put aside.
        """

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Add an event. Raises DecodeError before anything was changed if the event is not understood."""
