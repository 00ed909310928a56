"""Feedback: scores of runs, messages and calls."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from chatledger.models import Feedback, FeedbackComparison, FeedbackSummary
from chatledger.models.feedback import Score
from chatledger.server.answers.headers import IdempotencyKey
from chatledger.server.answers.pages import fitting_page
from chatledger.server.answers.sizes import Metadata, Name, Title
from chatledger.server.callers.chosen_ids import refuse_chosen
from chatledger.server.json_route import json_router
from chatledger.server.paths import FeedbackId
from chatledger.server.query import Limit
from chatledger.server.requests.bodies import Body, Items, Whole, all_items, items
from chatledger.server.state import Asking, Mine, Shared, Who

router = json_router(prefix="/feedback", tags=["feedback"])

OfRun = Annotated[str | None, Query(description="Only scores of this run.")]
OfThread = Annotated[str | None, Query(description="Only scores of this thread.")]
OfUser = Annotated[str | None, Query(description="Only scores by this user, of the threads that the token sees.")]
OfKey = Annotated[str | None, Query(description="Only scores under this key.")]
OfAgent = Annotated[str | None, Query(description="Only scores of runs of this agent.")]
OfModel = Annotated[str | None, Query(description="Only scores of runs of this model.")]
Since = Annotated[datetime | None, Query(description="Only scores from this time on.")]
Until = Annotated[datetime | None, Query(description="Only scores before this time.")]
Cursor = Annotated[str | None, Query(description="The `next_cursor` of the page before.")]


class NewFeedback(Body):
    """A score to record. On a user's token it is that user's."""

    run_id: str = Field(description="The run that is scored.")
    key: Name = Field(description="What is scored, such as `thumb` or `helpfulness`.")
    score: Score = Field(description="The score, a number from -1e100 to 1e100.")
    kwargs: Metadata = Field({}, description="Further data, such as a comment or a correction.")
    author: Title | None = Field(None, description="Who gave the score. The caller says so: it is not checked.")
    source: Name | None = Field(None, description="Where it was given, such as `ui` or `eval`. Not checked either.")
    message_id: str | None = Field(None, description="The message that is scored; null for the whole run.")
    call_index: Whole | None = Field(None, description="The call of the message that is scored, counted from 0.")
    feedback_id: str | None = Field(None, description="The id; the ledger makes one if there is none.")
    user_id: str | None = Field(
        None, description="The user whose score it is. It is checked: a user's token gives their own."
    )


@router.post("", status_code=201)
async def record_feedback(
    ledger: Asking, caller: Who, state: Shared, body: NewFeedback, idempotency_key: IdempotencyKey
) -> Feedback:
    """Record a score. A later score of the same target, key and user replaces it in the lists and sums."""
    refuse_chosen(state.ids, caller, feedback_id=body.feedback_id)
    return await ledger.feedback.record(body, idempotency_key=idempotency_key)


@router.get("")
async def list_feedback(
    ledger: Mine,
    limit: Limit,
    run_id: OfRun = None,
    thread_id: OfThread = None,
    user_id: OfUser = None,
    key: OfKey = None,
    events: Annotated[bool, Query(description="List replaced and removed scores too.")] = False,
    cursor: Cursor = None,
) -> Items[Feedback]:
    """List the scores that count, newest first: the latest of each target, key and user, unless it was removed."""
    chosen: dict[str, Any] = {"run_id": run_id, "thread_id": thread_id, "user_id": user_id, "key": key}
    return items(await fitting_page(partial(ledger.feedback.list, **chosen, events=events, cursor=cursor), limit))


@router.get("/summary")
async def summarize_feedback(
    ledger: Mine,
    key: OfKey = None,
    agent: OfAgent = None,
    model: OfModel = None,
    since: Since = None,
    until: Until = None,
    thread_id: OfThread = None,
    run_id: OfRun = None,
    user_id: OfUser = None,
    events: Annotated[bool, Query(description="Count replaced and removed scores too.")] = False,
) -> Items[FeedbackSummary]:
    """Count the current scores of each key, with their mean, minimum and maximum."""
    summaries = await ledger.feedback.summary(
        key=key,
        agent=agent,
        model=model,
        since=since,
        until=until,
        thread_id=thread_id,
        run_id=run_id,
        user_id=user_id,
        events=events,
    )
    return await all_items(summaries)


@router.get("/compare")
async def compare_feedback(
    ledger: Mine,
    key: Annotated[str, Query(description="The key whose scores are compared.")],
    by: Annotated[
        str, Query(description="`model`, `agent`, or `metadata.KEY`, a key of the runs' metadata.")
    ] = "model",
    agent: OfAgent = None,
    model: OfModel = None,
    since: Since = None,
    until: Until = None,
    user_id: OfUser = None,
) -> Items[FeedbackComparison]:
    """Compare the current scores of models, agents or values of the metadata, with 95 % intervals and mean costs."""
    comparison = await ledger.feedback.compare(
        key, by, agent=agent, model=model, since=since, until=until, user_id=user_id
    )
    return await all_items(comparison)


@router.delete("/{feedback_id:score}")
async def remove_feedback(ledger: Mine, feedback_id: FeedbackId) -> Feedback:
    """Withdraw a score and the earlier ones of its target, key and user. A user withdraws only their own scores."""
    return await ledger.feedback.remove(feedback_id)
