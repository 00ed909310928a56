"""The stream of one response: assembles the whole payload from its events.

The codec of the format reads that payload, so a streamed response is stored like an append of the whole response. An
event that is not understood is put aside: it does not change the effect of other events.
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
"""Returns the pieces of the message in an event."""


class Stream(ABC):
    """One response that arrives in events.

    `usage` is the provider's object, `finish_reason` the provider's word for the end of the response. `failure` is the
    reason why the provider broke off the stream, else None. `unknown` has the events that were not understood.
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
        """Take an event. Returns the pieces of the message that it adds, as far as they are known.

        Raises DecodeError only for a value that is not a dict and does not dump a dict.
        """
        return self.take(self.plain(value))

    def plain(self, value: object) -> Event:
        """The event as a dict. Raises DecodeError."""
        try:
            return self._plain(value)
        except DecodeError:
            if not isinstance(value, dict):
                raise
            return value  # an object in it cannot be dumped, so the event is put aside

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
        """The response so far, for the codec of the format; empty before the first event. The codec can decode it at
        any time, because a call without a name is put aside.
        """

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Add an event. If the event is not understood, raises DecodeError before it changes anything."""
