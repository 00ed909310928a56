"""The branches of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from chatledger.models import Alternative, Branch, ChatMessage
from chatledger.repositories import scope_of
from chatledger.server.answers.headers import ExpectedMark
from chatledger.server.answers.pages import fitting, fitting_part, written
from chatledger.server.json_route import json_router
from chatledger.server.paths import MessageId, ThreadId, api_path
from chatledger.server.query import Cursor, Limit
from chatledger.server.requests.bodies import Body, Items, Whole, items
from chatledger.server.state import Asking, Mine
from chatledger.storage.repositories.alternatives import Alternatives
from chatledger.storage.repositories.branches import branches_of

router = json_router(prefix="/threads/{thread_id}", tags=["branches"])


class Fork(Body):
    """A branch to create."""

    at: str | None = Field(description="The id of the last message that the new branch shares; null shares none.")
    branch: Whole | None = Field(None, description="The branch to fork; null for the active one.")
    activate: bool = Field(True, description="Whether the new branch becomes the active one.")


class Rewind(Body):
    """The messages to remove from the end of a branch."""

    to: str | None = Field(description="The id of the last message to keep; null removes all.")
    branch: Whole | None = Field(None, description="The branch; null for the active one.")


@router.get("/branches")
async def list_branches(ledger: Mine, thread_id: ThreadId, limit: Limit, cursor: Cursor = None) -> Items[Branch]:
    """List the branches of a thread, in the order of their creation."""

    async def read(skip: int, count: int) -> Sequence[Branch]:
        return await branches_of(scope_of(ledger), thread_id, skip=skip, limit=count)

    return items(await fitting_part(read, limit, cursor))


@router.post("/branches", status_code=201)
async def fork_branch(
    ledger: Asking, thread_id: ThreadId, body: Fork, response: Response, expected: ExpectedMark
) -> Branch:
    """Create a branch that shares the messages up to one of them. It copies no message."""
    branch = await ledger.branches.fork(thread_id, **body.model_dump(), expected=expected)
    place = api_path("threads", thread_id, "messages", branch=branch.branch)
    response.headers.update({"Location": place, "ETag": f'"{branch.mark}"'})
    return branch


@router.post("/branches/{branch}/activate")
async def activate_branch(
    ledger: Asking, thread_id: ThreadId, branch: Annotated[int, Path(ge=0, description="The number of the branch.")]
) -> Branch:
    """Make a branch the active one, which requests use by default."""
    return await ledger.branches.activate(thread_id, branch)


@router.post("/rewind")
async def rewind_branch(ledger: Mine, thread_id: ThreadId, body: Rewind, expected: ExpectedMark) -> Items[ChatMessage]:
    """Remove all messages after one of them from a branch, and return them: the first ones, with `complete: false`, if
    all would have more than 8 MiB. Other branches that share them keep them.
    """
    removed = await ledger.messages.rewind(thread_id, **body.model_dump(), expected=expected)
    count = fitting(await written(removed))
    return Items(items=list(removed[:count]), complete=count >= len(removed))


@router.get("/messages/{message_id}/alternatives")
async def list_alternatives(
    ledger: Mine, thread_id: ThreadId, message_id: MessageId, limit: Limit, cursor: Cursor = None
) -> Items[Alternative]:
    """List a message and those of other branches in its place, such as two answers to one question."""
    alternatives = Alternatives(scope_of(ledger), thread_id, message_id)
    return items(await fitting_part(alternatives.read, limit, cursor))
