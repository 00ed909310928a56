"""What the routes of an application share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Query, Request

from chatledger.errors import LimitExceeded, StorageError
from chatledger.ledger import Ledger
from chatledger.server.access import Caller
from chatledger.server.limits import ServerLimits
from chatledger.server.tokens import TokenFile

_USUAL_PAGE = 50


@dataclass(slots=True)
class State:
    limits: ServerLimits
    ledger: Ledger | None = None
    streams: int = 0
    """The number of open event streams."""
    waits: set[asyncio.Timeout] = field(default_factory=set)
    """The time limits of the streams that wait for a change."""
    draining: bool = False
    """Whether the server was told to stop."""
    tokens: TokenFile | None = None
    """The tokens with which people log in to the page; None if the application has a login of its own, or none."""

    def drain(self) -> None:
        """End the event streams, so that the server can stop. Their clients reconnect, to another server."""
        self.draining = True
        for wait in self.waits:
            wait.reschedule(0)

    def page_size(self, limit: int | None) -> int:
        """Raises LimitExceeded beyond the limit of a page."""
        if limit is None:
            return min(_USUAL_PAGE, self.limits.page)
        if not 1 <= limit <= self.limits.page:
            raise LimitExceeded("items of a page", limit, self.limits.page, minimum=1)
        return limit


# The dependencies are `async` without awaiting anything: FastAPI runs any other function in a thread.


async def state_of(request: Request) -> State:
    state: State = request.app.state.server
    return state


async def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def ledger_of(request: Request) -> Ledger:
    """The ledger as the caller sees it."""
    ledger = (await state_of(request)).ledger
    if ledger is None:
        raise StorageError("the server has not opened its ledger yet", retryable=True)
    return (await caller_of(request)).view(ledger)


async def page_size(
    request: Request,
    limit: Annotated[int | None, Query(description="Maximum number of items, 1 to 200; 50 by default.")] = None,
) -> int:
    return (await state_of(request)).page_size(limit)


Mine = Annotated[Ledger, Depends(ledger_of)]
"""The ledger as the caller sees it."""
Who = Annotated[Caller, Depends(caller_of)]
Shared = Annotated[State, Depends(state_of)]
Limit = Annotated[int, Depends(page_size)]
"""The maximum number of items to return: the query parameter `limit`."""
