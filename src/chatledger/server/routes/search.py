"""Search in messages and titles."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Query

from chatledger.models import Hit
from chatledger.server.answers.pages import fitting_page
from chatledger.server.json_route import json_router
from chatledger.server.query import Limit
from chatledger.server.requests.bodies import Items, items
from chatledger.server.state import OfUser

router = json_router(prefix="/search", tags=["search"])

Words = Annotated[str, Query(description="The text to find, without regard to case; up to 1,000 characters.")]
OfKind = Annotated[str | None, Query(description="Only threads of this kind.")]
Cursor = Annotated[str | None, Query(description="The `next_cursor` of the page before, with the same filters.")]


@router.get("/messages")
async def search_messages(
    ledger: OfUser,
    limit: Limit,
    q: Words,
    thread_id: Annotated[str | None, Query(description="Only messages of this thread.")] = None,
    role: Annotated[list[str] | None, Query(description="Only messages of this role. Repeat it for more.")] = None,
    kind: OfKind = None,
    since: Annotated[datetime | None, Query(description="Only messages from this time on.")] = None,
    until: Annotated[datetime | None, Query(description="Only messages before this time.")] = None,
    cursor: Cursor = None,
) -> Items[Hit]:
    """Find the messages that contain a text, those of the thread with the latest activity first. A page that stopped
    before it found `limit` hits has `complete: false` and a cursor.
    """
    read = partial(
        ledger.messages.search,
        q,
        thread_id=thread_id,
        roles=role,
        kind=kind,
        since=since,
        until=until,
        cursor=cursor,
    )
    return items(await fitting_page(read, limit))


@router.get("/threads")
async def search_threads(
    ledger: OfUser, limit: Limit, q: Words, kind: OfKind = None, cursor: Cursor = None
) -> Items[Hit]:
    """Find the threads whose title or messages contain a text, latest activity first. Each thread is one hit."""
    read = partial(ledger.threads.search, q, kind=kind, cursor=cursor)
    return items(await fitting_page(read, limit))
