"""What one caller may take of a process at a time, so that the requests of the others are not kept waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.models.weight import CALLER
from chatledger.server.callers.access import Caller

_PLACE = "place"


class Who(NamedTuple):
    """A caller, by whichever of their tokens."""

    tenant: str
    user_id: str | None
    operates: bool

    @classmethod
    def of(cls, scope: Scope) -> Who | None:
        """Who sends the request; None for one that needs no token."""
        caller: Caller | None = scope.get("state", {}).get("caller")
        return None if caller is None else cls(caller.tenant, caller.user_id, caller.scope == "operator")


class CallerPlaces:
    """The places of each caller that has requests."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.requests: Counter[Who] = Counter()
        """The requests that are at work or wait."""
        self.lines: dict[Who, asyncio.Semaphore] = {}


class RequestPlace:
    """The place of a request among those of its caller."""

    def __init__(self, places: CallerPlaces, who: Who) -> None:
        self._places, self._who = places, who
        self._entered = False
        self._line: asyncio.Semaphore | None = None

    async def enter(self) -> None:
        """Wait for the place, unless the request had it before."""
        if self._entered:
            return
        self._entered = True
        self._places.requests[self._who] += 1
        line = self._places.lines.setdefault(self._who, asyncio.Semaphore(self._places.most))
        try:
            await line.acquire()
        except BaseException:
            self._forget()
            raise
        self._line = line

    def leave(self) -> None:
        if self._line is not None:
            self._line.release()
            self._line = None
            self._entered = False
            self._forget()

    def _forget(self) -> None:
        self._places.requests -= Counter([self._who])
        if self._who not in self._places.requests:
            del self._places.lines[self._who]


class Share:
    """The middleware behind the gate. So many requests of a caller are at work at once, and the others wait in order. A
    request takes its place after its body has come, so that slow bodies keep nobody waiting, and before the body is
    parsed. It holds the place until its client has taken the answer, so that answers which nobody reads do not fill
    the memory. A stream of events gives it back at its beginning: streams have a limit of their own.
    """

    def __init__(self, app: ASGIApp, *, places: CallerPlaces) -> None:
        self._app = app
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who = Who.of(scope) if scope["type"] == "http" else None
        if who is None:
            return await self._app(scope, receive, send)
        place = RequestPlace(self._places, who)

        async def sending(message: Message) -> None:
            if _begins_stream(message):
                place.leave()
            await send(message)

        scope["state"][_PLACE] = place
        CALLER.set(who)
        try:
            await self._app(scope, receive, sending)
        finally:
            place.leave()


async def enter(request: Request) -> None:
    """Wait for the place of the request. One without a caller needs none."""
    place: RequestPlace | None = getattr(request.state, _PLACE, None)
    if place is not None:
        await place.enter()


def leave(request: Request) -> None:
    """Give the place back until the answer, as a long request does that has a limit of its own."""
    place: RequestPlace | None = getattr(request.state, _PLACE, None)
    if place is not None:
        place.leave()


def _begins_stream(message: Message) -> bool:
    kind = Headers(raw=message["headers"]).get("content-type", "") if message["type"] == "http.response.start" else ""
    return kind.startswith("text/event-stream")


@dataclass(slots=True)
class HeldBodies:
    """The bytes of bodies that a process holds."""

    most: int
    most_of_caller: int
    of: Counter[Who | None] = field(default_factory=Counter)

    def begin(self, scope: Scope) -> HeldBytes:
        """For a request of which nothing has come."""
        return HeldBytes(self, Who.of(scope))


@dataclass(slots=True)
class HeldBytes:
    """Those of one request."""

    bodies: HeldBodies
    who: Who | None
    size: int = 0

    def take(self, size: int) -> bool:
        """Hold so many more, if they fit."""
        held = self.bodies
        fit = held.of[self.who] + size <= held.most_of_caller and held.of.total() + size <= held.most
        if fit:
            held.of[self.who] += size
            self.size += size
        return fit

    def close(self) -> None:
        """Give them back."""
        self.bodies.of -= Counter({self.who: self.size})  # which also drops a caller without bodies
