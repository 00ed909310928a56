"""The page for people, at `/`: HTML that the server renders from templates, with one style sheet and one script.

It loads nothing from elsewhere, and works without its script. The script adds what a page alone cannot do: a draft that
grows while it is written, earlier messages on scrolling, and keys.
"""

from __future__ import annotations

from fastapi import Depends, FastAPI

from chatledger.server.page import conversation, login, media, scores, static, threads, usage
from chatledger.server.query import refuse_unfit

__all__ = ["add_page_to"]


def add_page_to(app: FastAPI) -> None:
    for module in (threads, conversation, media, scores, usage, login, static):
        app.include_router(module.router, include_in_schema=False, dependencies=[Depends(refuse_unfit)])
