"""The branches of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from chatledger.models import Alternative, Branch, ChatMessage
from chatledger.repositories import scope_of
from chatledger.server.bodies import Body, Items, Whole, items
from chatledger.server.headers import ExpectedMark
from chatledger.server.json_route import json_router
from chatledger.server.pages import fitting, fitting_part, written
from chatledger.server.paths import ThreadId
from chatledger.server.state import Asking, Cursor, Limit, Mine
from chatledger.storage.repositories.alternatives import alternatives_of
from chatledger.storage.repositories.branches import branches_of, fork_at
from chatledger.storage.repositories.removal import rewind_to

router = json_router(prefix="/threads/{thread_id}", tags=["branches"])


class Fork(Body):
    """A branch to create."""

    at: Whole = Field(description="The seq of the last message that the new branch shares; 0 shares none.")
    branch: Whole | None = Field(None, description="The branch to fork; null for the active one.")
    activate: bool = Field(True, description="Whether the new branch becomes the active one.")


class Rewind(Body):
    """The messages to remove from the end of a branch."""

    to: Whole = Field(description="The seq of the last message to keep; 0 removes all.")
    branch: Whole | None = Field(None, description="The branch; null for the active one.")


@router.get("/branches")
async def list_branches(ledger: Mine, thread_id: ThreadId, limit: Limit, cursor: Cursor = None) -> Items[Branch]:
    """List the branches of a thread, in the order of their creation."""

    async def read(skip: int, count: int) -> Sequence[Branch]:
        return await branches_of(scope_of(ledger), thread_id, skip=skip, limit=count)

    return items(await fitting_part(read, limit, cursor))


@router.post("/branches", status_code=201)
async def fork_branch(ledger: Asking, thread_id: ThreadId, body: Fork, expected: ExpectedMark) -> Branch:
    """Create a branch that shares the messages up to a seq. It copies no message. An append with `after` forks too."""
    return await fork_at(scope_of(ledger), thread_id, **body.model_dump(), expected=expected)


@router.post("/branches/{branch}/activate")
async def activate_branch(
    ledger: Asking, thread_id: ThreadId, branch: Annotated[int, Path(description="The number of the branch.")]
) -> Branch:
    """Make a branch the active one, which requests use by default."""
    return await ledger.branches.activate(thread_id, branch)


@router.post("/rewind")
async def rewind_branch(ledger: Mine, thread_id: ThreadId, body: Rewind, expected: ExpectedMark) -> Items[ChatMessage]:
    """Remove all messages after a seq from a branch, and return them: the first ones, with `complete: false`, if all
    would have more than 8 MiB. Other branches that share them keep them.
    """
    removed = await rewind_to(scope_of(ledger), thread_id, **body.model_dump(), expected=expected)
    count = fitting(await written(removed))
    return Items(items=list(removed[:count]), complete=count >= len(removed))


@router.get("/alternatives")
async def list_alternatives(
    ledger: Mine,
    thread_id: ThreadId,
    seq: Annotated[int, Query(description="The position of the message.")],
    limit: Limit,
    branch: Annotated[int | None, Query(description="The branch; the active one by default.")] = None,
    cursor: Cursor = None,
) -> Items[Alternative]:
    """List the message at a seq and those of other branches in its place, such as two answers to one question."""

    async def read(skip: int, count: int) -> Sequence[Alternative]:
        return await alternatives_of(scope_of(ledger), thread_id, seq, branch=branch, skip=skip, limit=count)

    return items(await fitting_part(read, limit, cursor))
