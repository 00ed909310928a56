"""The runs of agents."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from chatledger.models import Deleted, Run, RunStatus
from chatledger.models.json import Json
from chatledger.server.answers.headers import IdempotencyKey
from chatledger.server.answers.pages import fitting_page
from chatledger.server.answers.sizes import Metadata, Name
from chatledger.server.callers.chosen_ids import made_of, refuse_chosen
from chatledger.server.callers.seen import as_seen
from chatledger.server.json_route import json_router
from chatledger.server.paths import RunId, ThreadId, api_path
from chatledger.server.query import Limit
from chatledger.server.requests.bodies import Body, Items, ReportedUsage, items
from chatledger.server.state import Mine, Shared, Who

router = json_router(tags=["runs"])


class NewRun(Body):
    """A run to start."""

    run_id: str | None = Field(None, description="The id; the ledger makes one if there is none.")
    agent: Name | None = Field(None, description="The name of the agent.")
    model: Name | None = Field(None, description="The name of the model.")
    input: Json | None = Field(None, description="The input of the run. Values such as keys are stored as `***`.")
    metadata: Metadata | None = Field(None, description="Data of the application about the run.")


class RunEnd(Body):
    """How a run ended."""

    status: RunStatus = Field(description="The outcome.")
    usage: ReportedUsage | None = Field(
        None, description="The tokens and the cost; null keeps the sum of the run's drafts."
    )
    error: str | None = Field(None, description="Why the run failed.")


@router.post("/threads/{thread_id}/runs", status_code=201)
async def start_run(
    ledger: Mine,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: NewRun,
    response: Response,
    idempotency_key: IdempotencyKey,
) -> Run:
    """Store a run with the status `running`. The same request again, with a `run_id` or the same `Idempotency-Key`,
    changes nothing.
    """
    refuse_chosen(state.ids, caller, run_id=body.run_id)
    if body.run_id is None:
        body = body.model_copy(update={"run_id": made_of(idempotency_key, caller, "run", thread_id)})
    run = await ledger.runs.start(thread_id, **body.model_dump())
    response.headers["Location"] = api_path("runs", run.run_id)
    return run


@router.get("/runs")
async def list_runs(
    ledger: Mine,
    limit: Limit,
    thread_id: Annotated[str | None, Query(description="Only runs of this thread.")] = None,
    status: Annotated[RunStatus | None, Query(description="Only runs with this status.")] = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of the page before.")] = None,
) -> Items[Run]:
    """List runs in the order of their ids. With `status`, a page may have fewer items than `limit` although more
    follow: read on while there is a `next_cursor`.
    """
    read = partial(ledger.runs.list, thread_id=thread_id, status=status, cursor=cursor)
    page = await fitting_page(read, limit)
    return items(replace(page, items=[as_seen(run, ledger) for run in page.items]))


@router.get("/runs/{run_id}")
async def get_run(ledger: Mine, run_id: RunId) -> Run:
    """Read a run."""
    return as_seen(await ledger.runs.get(run_id), ledger)


@router.delete("/runs/{run_id}")
async def delete_run(ledger: Mine, run_id: RunId) -> Deleted:
    """Delete a run for good, with its scores. Its messages stay, and belong to no run."""
    return await ledger.runs.delete(run_id)


@router.post("/runs/{run_id}/finish")
async def finish_run(ledger: Mine, run_id: RunId, body: RunEnd) -> Run:
    """End a run with a status. The same request again changes nothing."""
    return as_seen(await ledger.runs.finish(run_id, status=body.status, usage=body.usage, error=body.error), ledger)
