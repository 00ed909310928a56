"""What the routes of an application share."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, HTTPException, Query, Request

from chatledger.errors import StorageError
from chatledger.formats.agent_service import ServiceMetadata
from chatledger.ledger import Ledger
from chatledger.repositories import scope_of
from chatledger.server.answers.event_stream import EncodedOnce
from chatledger.server.callers.access import SAFE, Authenticate, Caller
from chatledger.server.callers.approvals import ApprovalsBy
from chatledger.server.callers.chosen_ids import IdsBy
from chatledger.server.callers.tokens import TokenFile
from chatledger.server.client_limits import ServerLimits
from chatledger.server.shares import CallerPlaces, HeldBodies, enter

_BODIES, _CALLER_BODIES = 16, 4
"""The largest bodies that a process holds at once, in all and of one caller."""
_FRESH = 1.0
"""Seconds for which the answer to a ping is used again."""


@dataclass(slots=True)
class State:
    limits: ServerLimits
    authenticate: Authenticate
    ledger: Ledger | None = None
    streams: Counter[Caller] = field(default_factory=Counter)
    """The number of open event streams and uploads of each caller."""
    encoded: EncodedOnce = field(default_factory=EncodedOnce)
    """The events that the streams are sending."""
    waits: set[asyncio.Timeout] = field(default_factory=set)
    """The time limits of the streams that wait for a change."""
    draining: bool = False
    """Whether the server was told to stop."""
    places: CallerPlaces = field(init=False)
    """The requests at work of each caller."""
    bodies: HeldBodies = field(init=False)
    """The bytes of bodies that the process holds."""
    ids: IdsBy = "client"
    """Who makes the ids of what users' tokens store."""
    agents: frozenset[str] = frozenset()
    """The names of the agents that may be asked."""
    unserved: set[str] = field(default_factory=set)
    """The agents that somebody asked and no worker of this process runs. The log named each of them once."""
    approvals: ApprovalsBy = "admin"
    """Who decides about calls for which an answer waits."""
    service: ServiceMetadata | None = None
    """The agents and models of the routes of an agent service; None without these routes."""
    tokens: TokenFile | None = None
    """The tokens with which people log in to the page; None if the application has a login of its own, or none."""

    _may_serve: bool = False
    """Whether the ledger has keys, or the database was not recorded as encrypted when it was first used."""
    _ping: tuple[float, asyncio.Task[float]] | None = None
    """The last ping and when it began."""

    def __post_init__(self) -> None:
        body = self.limits.body
        self.places = CallerPlaces(self.limits.caller_requests)
        self.bodies = HeldBodies(most=_BODIES * body, most_of_caller=_CALLER_BODIES * body)

    async def ping(self, ledger: Ledger) -> float:
        """The seconds in which the database answered a ping that is at most a second old. Raises as it did. All that
        ask meanwhile share it, so that they cannot keep the database busy.
        """
        now = time.monotonic()
        if self._ping is None or (self._ping[1].done() and now - self._ping[0] > _FRESH):
            self._ping = now, asyncio.create_task(ledger.ping())
        return await asyncio.shield(self._ping[1])

    async def require_keys(self, ledger: Ledger) -> None:
        """Raises EncryptionError if the database is recorded as encrypted and the ledger has no keys. It asks before
        the first use: a mounted application is not told when the server starts. The ledger checks each later write.
        """
        if not self._may_serve:
            await scope_of(ledger).require_keys()
            self._may_serve = True

    @contextmanager
    def stream_of(self, caller: Caller) -> Iterator[None]:
        """Count a stream as one of the caller's. Raises HTTPException if there are too many."""
        if self.streams[caller] >= self.limits.caller_streams or self.streams.total() >= self.limits.streams:
            detail = "the server has as many open streams as it allows, in all or of one caller; try again later"
            raise HTTPException(503, detail, {"Retry-After": "5"})
        self.streams[caller] += 1
        try:
            yield
        finally:
            self.streams -= Counter([caller])  # which also drops a caller without streams

    def drain(self) -> None:
        """End the event streams, so that the server can stop. Their clients reconnect, to another server."""
        self.draining = True
        for wait in self.waits:
            if not wait.expired():
                wait.reschedule(0)


def state_of(request: Request) -> State:
    state: State = request.app.state.server
    return state


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


# The dependencies are `async` without awaiting anything: FastAPI runs any other function in a thread.


async def _state(request: Request) -> State:
    return state_of(request)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


async def _ledger(request: Request) -> Ledger:
    caller_of(request).require("read" if request.method in SAFE else "write")
    return caller_of(request).view(await _opened(request))


async def _of_user(
    ledger: Annotated[Ledger, Depends(_ledger)],
    user_id: Annotated[str | None, Query(description="Only threads of this user.")] = None,
) -> Ledger:
    return ledger if user_id is None else ledger.user(user_id)


async def _may_read(request: Request) -> Ledger:
    caller_of(request).require("read")
    return caller_of(request).view(await _opened(request))


async def _may_ask(request: Request) -> Ledger:
    caller_of(request).require("ask")
    return caller_of(request).view(await _opened(request))


async def _asking(
    ledger: Annotated[Ledger, Depends(_may_ask)],
    user_id: Annotated[str | None, Query(description="Act as this user: the owner of a thread to create.")] = None,
) -> Ledger:
    return ledger if user_id is None else ledger.user(user_id)


async def _operated(request: Request) -> Ledger:
    caller_of(request).require("operator")
    return await _opened(request)


async def _opened(request: Request) -> Ledger:
    state = state_of(request)
    ledger = state.ledger
    if ledger is None:
        raise StorageError("the server has not opened its ledger yet", retryable=True)
    await enter(request)
    await state.require_keys(ledger)
    return ledger


Mine = Annotated[Ledger, Depends(_ledger)]
"""The ledger as the caller sees it, for a caller who may read, and who may write where the request is no GET."""
OfUser = Annotated[Ledger, Depends(_of_user)]
"""The same, for a list or a sum that an administrator may ask of one user: the query parameter `user_id`."""
MayRead = Annotated[Ledger, Depends(_may_read)]
"""The same for a caller who may read, whatever the method of the request."""
MayAsk = Annotated[Ledger, Depends(_may_ask)]
"""The ledger as the caller sees it, for a route that a token of scope `ask` may call. Such a route refuses what that
scope does not cover with `ask_scope.py`.
"""
Asking = Annotated[Ledger, Depends(_asking)]
"""The same as the user whom an administrator may name: the query parameter `user_id`."""
Operated = Annotated[Ledger, Depends(_operated)]
"""The whole ledger, for what an operator reads: no row of any tenant."""
Who = Annotated[Caller, Depends(_caller)]
Shared = Annotated[State, Depends(_state)]
