"""Authenticating an open event stream again, so that a withdrawn token does not read on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request

from chatledger.errors import ChatLedgerError
from chatledger.server.callers.access import Caller
from chatledger.server.problems import body_of, body_of_request
from chatledger.server.state import State, caller_of, state_of

_log = logging.getLogger("chatledger.server")
EVERY = 15
"""Seconds after which a stream is authenticated again: as often as an idle one sends a comment."""


class Watch:
    """Whether the caller of an open stream still is who opened it."""

    def __init__(self) -> None:
        self.ended = False
        self.problem: dict[str, Any] | None = None
        """Why the stream ends; None if its client only has to connect again."""
        self._wait: asyncio.Timeout | None = None

    @contextlib.contextmanager
    def waiting(self, wait: asyncio.Timeout) -> Iterator[None]:
        """While the stream waits for a change, this wait ends with the watch."""
        self._wait = wait
        try:
            yield
        finally:
            self._wait = None

    def end(self, problem: dict[str, Any] | None) -> None:
        self.ended, self.problem = True, problem
        if self._wait is not None and not self._wait.expired():
            self._wait.reschedule(0)


class WaitOver(Exception):
    """The time is over, the server drains, or the watch has ended."""


@asynccontextmanager
async def waiting_until(end: float, state: State, watch: Watch) -> AsyncIterator[None]:
    """Raises WaitOver at that time of the loop, when the server drains, and when the watch ends."""
    try:
        async with asyncio.timeout_at(0 if state.draining else end) as wait:
            state.waits.add(wait)
            try:
                with watch.waiting(wait):
                    yield
            finally:
                state.waits.discard(wait)
    except TimeoutError:
        if not wait.expired():
            raise
        raise WaitOver from None


@asynccontextmanager
async def watching(request: Request) -> AsyncIterator[Watch]:
    """Authenticates the request again and again while the stream is open."""
    watch = Watch()
    task = asyncio.create_task(_authenticate_again(request, watch))
    try:
        yield watch
    finally:
        task.cancel()


async def _authenticate_again(request: Request, watch: Watch) -> None:
    while not watch.ended:
        await asyncio.sleep(EVERY)
        try:
            async with asyncio.timeout(EVERY):
                caller = await state_of(request).authenticate(request)
        except ChatLedgerError as error:
            watch.end(body_of(error))
        except Exception:
            _log.exception("an event stream ends, because its request could not be authenticated again")
            watch.end(body_of_request(500, "ServerError", "the server could not authenticate the stream again"))
        else:
            _compare(caller, request, watch)


def _compare(caller: Caller | None, request: Request, watch: Watch) -> None:
    if caller is None:
        watch.end(body_of_request(401, "Unauthenticated", "the token was withdrawn, or its time is over"))
    elif caller != caller_of(request):  # another scope, say: a new connection is judged anew
        watch.end(None)
