"""The list of threads, and the search."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from chatledger.server.page.html import html_router, page
from chatledger.server.state import Mine

router = html_router()
_PAGE = 50
_HITS = 20


@router.get("/")
async def list_threads(
    request: Request,
    ledger: Mine,
    q: Annotated[str, Query(max_length=1_000)] = "",
    archived: bool = False,
    cursor: str | None = None,
) -> Response:
    """The threads, most recently active first; with `q`, those in which its words stand."""
    words = q.strip()
    if words:
        hits = await ledger.threads.search(words, limit=_HITS, cursor=cursor)
        return await page(request, "hits.html", hits=hits, query=words, cursor=cursor)
    threads = await ledger.threads.list(archived=archived, limit=_PAGE, cursor=cursor)
    return await page(request, "threads.html", threads=threads, archived=archived, cursor=cursor)
