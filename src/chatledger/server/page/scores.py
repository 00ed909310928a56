"""Giving a score to an answer, and making a branch the active one: what a person changes on the page."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from chatledger.errors import InvalidArgument, RunNotFound
from chatledger.models import Feedback
from chatledger.models.base import refusing
from chatledger.server.page.html import html_router, link, user_of
from chatledger.server.page.login import read_form
from chatledger.server.paths import PathId
from chatledger.server.state import Asking

router = html_router()


@router.post("/threads/{thread_id}/score")
async def score(request: Request, ledger: Asking, thread_id: PathId) -> Response:
    """Record a score of the form, and show its message again."""
    form = await read_form(request)
    run = await ledger.runs.get(form.get("run_id", ""))
    if run.thread_id != thread_id:
        raise RunNotFound(run.run_id)
    comment = form.get("comment", "").strip()
    with refusing("score"):
        new_score = Feedback(
            run_id=run.run_id,
            message_id=form.get("message_id") or None,
            key=form.get("key", "").strip(),
            score=_number(form.get("score", "")),
            kwargs={"comment": comment} if comment else {},
            user_id=user_of(request),
            source="page",
        )
    await ledger.feedback.record(new_score)
    at = _whole(form.get("at", ""))
    path = link(request.scope.get("root_path", ""), "threads", thread_id, branch=_whole(form.get("branch", "")), at=at)
    return RedirectResponse(path if at is None else f"{path}#m-{at}", status_code=303)


@router.post("/threads/{thread_id}/activate")
async def activate(request: Request, ledger: Asking, thread_id: PathId) -> Response:
    """Make a branch the one that the application continues."""
    branch = _whole((await read_form(request)).get("branch", ""))
    if branch is None:
        raise InvalidArgument("branch", "must be the number of a branch")
    await ledger.branches.activate(thread_id, branch)
    return RedirectResponse(link(request.scope.get("root_path", ""), "threads", thread_id), status_code=303)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument("score", f"must be a number, not {text!r}") from None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
