"""Threads."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query, Response
from pydantic import Field

from chatledger.errors import IdConflict, InvalidArgument
from chatledger.ids import new_id
from chatledger.ledger import Ledger
from chatledger.models import Deleted, Thread
from chatledger.rules.synthetic_results import INTERRUPTED
from chatledger.server.answers.headers import IdempotencyKey, tag_of, without_quotes
from chatledger.server.answers.pages import fitting_page
from chatledger.server.answers.sizes import Title, require_small_metadata
from chatledger.server.callers.ask_scope import refuse_beyond_ask
from chatledger.server.callers.chosen_ids import made_of, refuse_chosen
from chatledger.server.json_route import json_router
from chatledger.server.paths import ThreadId, api_path
from chatledger.server.query import Limit
from chatledger.server.requests.bodies import (
    Body,
    Items,
    NewThread,
    Order,
    Stored,
    ThreadUpdate,
    Whole,
    items,
)
from chatledger.server.state import Asking, Mine, OfUser, Shared, Who

router = json_router(prefix="/threads", tags=["threads"])


class ThreadCopy(Body):
    """The copy of a thread to make."""

    thread_id: str | None = Field(None, description="The id of the copy; the ledger makes one if there is none.")
    until: str | None = Field(None, description="The id of the last message to copy; null for all.")
    branch: Whole | None = Field(None, description="The branch to copy; null for the active one.")
    title: Title | None = Field(None, description="The title of the copy. That of the source, if it is not sent.")


class CallsToClose(Body):
    """The open calls to answer."""

    reason: str = Field(INTERRUPTED, description="The text of the results.")
    branch: Whole | None = Field(None, description="The branch; null for the active one.")


@router.get("")
async def list_threads(
    ledger: OfUser,
    limit: Limit,
    kind: Annotated[str | None, Query(description="Only threads of this kind.")] = None,
    archived: Annotated[bool | None, Query(description="Only archived threads, or only others.")] = False,
    since: Annotated[datetime | None, Query(description="Only threads active or created from this time on.")] = None,
    until: Annotated[datetime | None, Query(description="Only threads active or created before this time.")] = None,
    order: Annotated[Order, Query(description="By the last activity, or by the time of creation.")] = "active",
    newest_first: Annotated[bool, Query(description="Whether the newest come first.")] = True,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of the page before.")] = None,
) -> Items[Thread]:
    """List threads with their previews, in one statement."""
    read = partial(
        ledger.threads.list,
        kind=kind,
        archived=archived,
        since=since,
        until=until,
        order=order,
        newest_first=newest_first,
        cursor=cursor,
    )
    return items(await fitting_page(read, limit))


@router.post("", status_code=201)
async def create_thread(
    ledger: Asking, caller: Who, state: Shared, body: NewThread, response: Response, idempotency_key: IdempotencyKey
) -> Thread:
    """Create an empty thread. `rules` need a token that may write. A repeat with the same `Idempotency-Key` and the
    same body, or with a `thread_id` and `exist_ok`, returns the thread. Another body under the key is a conflict.
    """
    refuse_beyond_ask(caller, rules=body.rules is not None)
    refuse_chosen(state.ids, caller, thread_id=body.thread_id)
    derived = made_of(idempotency_key, caller, "thread") if body.thread_id is None else None
    owner = ledger if body.user_id is None else ledger.user(body.user_id)
    fields = body.model_dump(exclude={"user_id"})
    if derived is None:
        return _created(await owner.threads.create(**fields), response)
    thread = await owner.threads.create(**fields | {"thread_id": derived, "exist_ok": True})
    _require_same(thread, body, idempotency_key)
    return _created(thread, response)


def _created(thread: Thread, response: Response) -> Thread:
    response.headers.update({"Location": api_path("threads", thread.thread_id), "ETag": tag_of(thread)})
    return thread


def _require_same(thread: Thread, body: NewThread, key: str | None) -> None:
    """Raises IdConflict if another body made the thread, as far as the thread still tells: of one that was updated
    since, only what never changes. That of another owner was not found.
    """
    unchanged: dict[str, Any] = {"kind": body.kind}
    if thread.version == 0:
        unchanged |= {"title": body.title, "metadata": body.metadata, "rules": body.rules}
    for name, value in unchanged.items():
        if (getattr(thread, name) or None) != (value or None):
            detail = f"thread {thread.thread_id!r} has {_OTHER.get(name, f'another {name}')}; {_REMEDY}"
            raise IdConflict("idempotency_key", thread.thread_id, detail, idempotency_key=key)


_OTHER = {"metadata": "other metadata", "rules": "other rules"}
_REMEDY = "use another idempotency key for another thread"


@router.get("/{thread_id}")
async def get_thread(ledger: Mine, thread_id: ThreadId, response: Response) -> Thread:
    """Read a thread. An update compares only the version in its `ETag`, so that new messages do not hinder it."""
    thread = await ledger.threads.get(thread_id)
    response.headers["ETag"] = tag_of(thread)
    return thread


@router.patch("/{thread_id}")
async def update_thread(
    ledger: Mine,
    thread_id: ThreadId,
    body: ThreadUpdate,
    response: Response,
    if_match: Annotated[str | None, Header(description="Update only this version; else 412.")] = None,
) -> Thread:
    """Change the given fields. With `rules`, all messages are first checked."""
    changes = body.model_dump(exclude_unset=True)
    if body.merge and body.metadata:
        stored = (await ledger.threads.get(thread_id)).metadata or {}
        require_small_metadata({**stored, **body.metadata})
    thread = await ledger.threads.update(thread_id, **changes, expected=_version(if_match))
    response.headers["ETag"] = tag_of(thread)
    return thread


@router.post("/{thread_id}/copy", status_code=201)
async def copy_thread(
    ledger: Mine,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: ThreadCopy,
    response: Response,
    idempotency_key: IdempotencyKey,
) -> Thread:
    """Copy a path of a thread to a new thread of the same owner. Runs and scores stay with the source. A repeat with
    the same `Idempotency-Key` returns the copy.
    """
    refuse_chosen(state.ids, caller, thread_id=body.thread_id)
    fields = body.model_dump(exclude_unset=True)
    derived = made_of(idempotency_key, caller, "copy", thread_id) if body.thread_id is None else None
    if derived is None:
        copy = await _copy(ledger, thread_id, {**fields, "thread_id": body.thread_id or new_id()})
    else:
        copy = await _copy_once(ledger, thread_id, {**fields, "thread_id": derived})
    return _created(copy, response)


async def _copy(ledger: Ledger, source: str, fields: dict[str, Any]) -> Thread:
    title = {"title": fields["title"]} if "title" in fields else {}
    until, branch = fields.get("until"), fields.get("branch")
    return await ledger.threads.copy(source, fields["thread_id"], until=until, branch=branch, **title)


async def _copy_once(ledger: Ledger, source: str, fields: dict[str, Any]) -> Thread:
    """The copy of that id. It is looked for first, since the source may be gone when a request is repeated."""
    earlier = await ledger.threads.find(fields["thread_id"])
    if earlier is not None:
        return earlier
    try:
        return await _copy(ledger, source, fields)
    except IdConflict:  # by the same request at the same time
        return await ledger.threads.get(fields["thread_id"])


@router.post("/{thread_id}/close-open-calls")
async def close_open_calls(ledger: Mine, thread_id: ThreadId, body: CallsToClose) -> Stored:
    """Answer each open call with a result that says why there is none. The branch then accepts any message again."""
    return Stored.of(await ledger.messages.close_open_calls(thread_id, **body.model_dump(exclude_unset=True)))


@router.delete("/{thread_id}")
async def delete_thread(ledger: Mine, thread_id: ThreadId) -> Deleted:
    """Delete a thread for good, with all that belongs to it. Returns the number of rows by table."""
    return await ledger.threads.delete(thread_id)


_VERSION = re.compile(r"([0-9]{1,18})(?:\.[\w-]{12})?", re.ASCII)
"""The version of a thread, with no more digits than the database can hold, or the entity tag that begins with it."""


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    version = _VERSION.fullmatch(without_quotes(if_match))
    if version is None:
        raise InvalidArgument("If-Match", f'must be the version of a thread, such as "3", not {if_match!r}')
    return int(version[1])
