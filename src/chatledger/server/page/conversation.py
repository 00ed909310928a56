"""A conversation: a page of its messages, the fragments that the script adds to it, and a message as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from chatledger.ledger import Ledger
from chatledger.models import Branch, ChatMessage, Cursor, Feedback, Newest, Oldest, Thread
from chatledger.models.parts import MediaPart
from chatledger.models.weight import apart, in_thread
from chatledger.repositories import scope_of
from chatledger.repositories.history import History, history_of, with_draft
from chatledger.server.answers.json_response import plain
from chatledger.server.answers.pages import fitting_section
from chatledger.server.callers.seen import as_seen
from chatledger.server.page.html import HEADERS, encodable, html_router, link, page, pretty
from chatledger.server.page.shown import Beside, Renderer
from chatledger.server.paths import PathId
from chatledger.server.state import Mine
from chatledger.storage.history.window_request import Window as Asked
from chatledger.storage.repositories.alternatives import find_ways
from chatledger.storage.repositories.runs import find_runs

router = html_router()
PAGE = 50
_RUNS_AT_ONCE = 500
_LARGEST = 1024 * 1024
"""Maximum bytes of the messages of a page, if there are several: HTML takes up to five times as many."""
_BRANCHES = 200
"""The newest branches, among which a person may choose."""
_SCORES = 1_000
"""The most scores that a page shows, of all its messages together."""
_HEADING = 200
"""The most characters of a question that head a page."""
Position = Annotated[int | None, Query(ge=0, le=2**53)]
Place = Annotated[Cursor | None, Query()]


@dataclass(frozen=True, slots=True)
class PageWindow:
    """Which messages of which branch: the newest, those before or after a cursor, around a seq, or from one on."""

    branch: int | None = None
    before: Cursor | None = None
    after: Cursor | None = None
    at: int | None = None
    start: int | None = None

    async def read(self, ledger: Ledger, thread_id: str) -> History:
        part = Newest(PAGE, before=self.before) if self.after is None else Oldest(PAGE, after=self.after)
        asked = Asked.shown(scope_of(ledger).tenant, thread_id, part, self.branch, None)
        if self.start is not None:
            asked = replace(asked, newest=None, limit=PAGE, after=max(self.start - 1, 0))
        elif self.at is not None and self.after is None:
            asked = replace(asked, before=self.at + PAGE // 2)
        return history_of(await fitting_section(ledger, asked, largest=_LARGEST))

    @property
    def is_newest(self) -> bool:
        return all(bound is None for bound in (self.before, self.after, self.at, self.start))


@router.get("/threads/{thread_id}")
async def show_thread(
    request: Request,
    ledger: Mine,
    thread_id: PathId,
    branch: Position = None,
    before: Place = None,
    after: Place = None,
    at: Position = None,
) -> Response:
    """The conversation, by its newest messages."""
    return await _show(request, ledger, thread_id, PageWindow(branch, before, after, at), "thread.html")


@router.get("/threads/{thread_id}/messages")
async def show_messages(
    request: Request,
    ledger: Mine,
    thread_id: PathId,
    branch: Position = None,
    before: Place = None,
    after: Place = None,
    start: Position = None,
) -> Response:
    """The same messages as the page, alone: the script puts them into the page that it has. It asks for those from the
    `start` on, a seq, after a change.
    """
    return await _show(request, ledger, thread_id, PageWindow(branch, before, after, start=start), "messages.html")


@router.get("/threads/{thread_id}/messages/{message_id}/json")
async def show_json(ledger: Mine, thread_id: PathId, message_id: PathId) -> Response:
    """The message as it is stored."""
    message = await ledger.messages.get(thread_id, message_id)
    text = await apart(lambda: encodable(pretty(plain(message))), message)
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


async def _show(request: Request, ledger: Ledger, thread_id: str, window: PageWindow, template: str) -> Response:
    thread = await ledger.threads.get(thread_id)
    history = await window.read(ledger, thread_id)
    branches = await ledger.branches.list(thread_id)
    beside = await read_beside(ledger, history, branches)
    root = request.scope.get("root_path", "")

    def source(message: ChatMessage, index: int, part: MediaPart) -> str | None:
        return (
            None if message.message_id is None else link(root, "threads", thread_id, "media", message.message_id, index)
        )

    shown = await in_thread(lambda: Renderer(source).show(with_draft(history), beside))
    return await page(
        request,
        template,
        thread=thread,
        heading=heading_of(thread, history),
        history=history,
        branches=branches[-_BRANCHES:],
        messages=shown,
        newest_scores=beside.newest_scores,
        window=window,
        is_live=history.branch == thread.active_branch,
    )


def heading_of(thread: Thread, history: History) -> str:
    """The title of the thread, else the beginning of its first question if the history begins with the thread, else its
    id.
    """
    own = history.previous_cursor is None
    asked = next((message.text for message in history if message.role == "user"), "") if own else ""
    return thread.title or " ".join(asked[:_HEADING].split()) or thread.thread_id


async def read_beside(
    ledger: Ledger, history: History, branches: Sequence[Branch], *, all_scores: bool = False
) -> Beside:
    """The runs and scores of the messages with one statement each, and their alternatives where branches part. Without
    `all_scores`, only the newest scores.
    """
    ids = list({message.run_id for message in with_draft(history) if message.run_id is not None})
    if not ids:
        return Beside(alternatives=await _alternatives(ledger, history, branches))
    runs = await find_runs(scope_of(ledger), ids)
    scores: defaultdict[str | None, list[Feedback]] = defaultdict(list)
    are_cut = False
    for at in range(0, len(ids), _RUNS_AT_ONCE):
        some, has_more = await _scores(ledger, ids[at : at + _RUNS_AT_ONCE], all_scores)
        are_cut = are_cut or has_more
        for score in some:
            scores[score.message_id].append(score)
    last = {message.run_id: message.message_id for message in with_draft(history) if message.role == "assistant"}
    for score in scores.pop(None, []):  # of a whole run: it stands at the run's last answer here
        scores[last.get(score.run_id)].append(score)
    alternatives = await _alternatives(ledger, history, branches)
    runs = {run_id: as_seen(run, ledger) for run_id, run in runs.items()}
    return Beside(runs, scores, _SCORES if are_cut else None, alternatives)


async def _scores(ledger: Ledger, run_ids: Sequence[str], all_scores: bool) -> tuple[list[Feedback], bool]:
    """The scores of these runs, newest first, and whether there are more."""
    page = await ledger.feedback.list(run_id=run_ids, limit=_SCORES)
    scores = list(page)
    while all_scores and page.next_cursor is not None:
        page = await ledger.feedback.list(run_id=run_ids, limit=_SCORES, cursor=page.next_cursor)
        scores += page
    return scores, page.next_cursor is not None


async def _alternatives(
    ledger: Ledger, history: History, branches: Sequence[Branch]
) -> dict[int, Sequence[tuple[int, bool]]]:
    """Where a branch parts between two messages, the second has alternatives."""
    forks = {branch.forked_at or 0 for branch in branches if branch.branch}
    places = [0, *(message.seq or 0 for message in with_draft(history))]
    parted = [later for earlier, later in pairwise(places) if any(earlier <= fork < later for fork in forks)]
    scope = scope_of(ledger)
    ways_at = await find_ways(scope, history.thread_id, history.branch, parted) if parted else {}
    return {seq: ways for seq, ways in ways_at.items() if len(ways) > 1}
