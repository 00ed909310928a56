"""Records, lists and summarizes scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from chatledger.annexes import load
from chatledger.arguments import BOOL, INT, STR, STR_OR_NONE, require
from chatledger.errors import (
    InvalidArgument,
    LimitExceeded,
)
from chatledger.ids import derived_id, new_id
from chatledger.models import Feedback, FeedbackComparison, FeedbackSummary, Page
from chatledger.models.base import read_moment, refuse_own_fields, refusing
from chatledger.storage.databases.scope import Scope
from chatledger.storage.lists.cursors import page_size
from chatledger.storage.lists.many import AT_ONCE, read_ids
from chatledger.storage.repositories.feedback import ScoreFilter, list_scores, record_score, retract
from chatledger.storage.schema.text import encode_key


class FeedbackRepository:
    """The scores of runs, messages and calls: `ledger.feedback`, and `tx.feedback` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def record(self, feedback: Feedback | Any, *, idempotency_key: str | None = None) -> Feedback:
        """Store the feedback and return it with its id and time.

            score = Feedback(run_id=run.run_id, message_id=answer.message_id, key="thumb", score=1, user_id="ada")
            await ledger.feedback.record(score)

        Each call stores one more score, unless it repeats a `feedback_id`, or an `idempotency_key` of the run. A repeat
        returns the first score, even if that was retracted since, or raises IdConflict if its content differs. A later
        score of the same target, key and user replaces an earlier one in `list` and `summary`.

        Raises RunNotFound, MessageNotFound for a message that the run's thread does not have, and InvalidArgument for a
        `call_index` that the message does not have.

        On a user's ledger the score is that user's: `user_id` is filled in, and another user raises InvalidArgument.

        `feedback` may be any object with the attributes `run_id`, `key` and `score`, such as a service's own feedback.
        """
        require(STR_OR_NONE, idempotency_key=idempotency_key)
        if isinstance(feedback, Feedback):
            refuse_own_fields(feedback, Feedback, "feedback", "its kwargs")
        with refusing("feedback"):
            fields = dict(feedback) if isinstance(feedback, Feedback) else feedback
            validated = Feedback.model_validate(fields, from_attributes=True)
        record = validated.model_copy(
            update={
                "feedback_id": validated.feedback_id or _feedback_id(validated.run_id, idempotency_key),
                "created_at": validated.created_at or datetime.now(UTC),
                "user_id": self._scope.tenant.seen_by(validated.user_id).user_id,
            }
        )
        if record.call_index is not None and record.message_id is None:
            raise InvalidArgument("feedback", "has a call_index and no message_id; name the message that made the call")
        encode_key(record.run_id, "run_id")
        encode_key(record.feedback_id or "", "feedback_id")
        if record.user_id is not None:
            encode_key(record.user_id, "user_id")
        if idempotency_key is not None:
            encode_key(idempotency_key, "idempotency_key")
        return await self._scope.write(lambda sql: record_score(sql, self._scope.tenant, record, idempotency_key))

    async def remove(self, feedback_id: str) -> Feedback:
        """Withdraw this score and the earlier scores of its target, key and user, and return it. Each gets a
        `retracted_at`, so that no earlier score counts again. A later score still counts. Removing it again changes
        nothing.

        Raises FeedbackNotFound and, on a user's ledger, TenantOnly for a score that is not the user's.
        """
        require(STR, feedback_id=feedback_id)
        now = datetime.now(UTC)
        return await self._scope.write(lambda sql: retract(sql, self._scope.tenant, feedback_id, now))

    async def list(
        self,
        *,
        run_id: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        key: str | None = None,
        events: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Feedback]:
        """A page of the scores that count, newest first: the latest score of each target (run, message, call), key and
        user, unless it was removed. All scores without a `user_id` count as one user's. The latest score has the latest
        `created_at` and, among equal ones, the greatest `feedback_id`. With `events=True`, every recorded score,
        replaced and removed ones too.

        `run_id` may be a list of up to 500 runs. Each page of the scores that count reads every score of the chosen
        runs, thread, user and key. `limit` is the maximum number of scores, 50 by default and 1,000 at most. The page's
        `damaged` has the errors of scores that cannot be read. Raises InvalidCursor and LimitExceeded.
        """
        require(STR_OR_NONE, thread_id=thread_id, user_id=user_id, key=key, cursor=cursor)
        require(BOOL, events=events)
        require(INT, limit=limit)
        ids = None if run_id is None else [run_id] if isinstance(run_id, str) else read_ids("run_id", run_id)
        if ids is not None and len(ids) > AT_ONCE:
            raise LimitExceeded("runs of a page of scores", len(ids), AT_ONCE)
        chosen = ScoreFilter(key, thread_id=thread_id, run_ids=ids, user_id=user_id)
        return await list_scores(self._scope, chosen, events=events, limit=page_size(limit), cursor=cursor)

    async def summary(
        self,
        *,
        key: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
        user_id: str | None = None,
        events: bool = False,
    ) -> Sequence[FeedbackSummary]:
        """The count, mean, lowest and highest score of each key, in order of key.

            for one in await ledger.feedback.summary(agent="support", since=datetime(2026, 1, 1, tzinfo=UTC)):
                print(one.key, one.count, one.mean)

        It counts the scores that `list` returns: thumb up, down and up again is one. With `events=True` it counts
        every recorded score, replaced and removed ones too.

        `agent` and `model` are those of the run. A score at `since` is included, one at `until` is not; both are
        datetimes with a zone, and are compared with the time of the score that counts. The kept scores of erased
        threads have no thread, run or user, and are left out if you name one, and on a user's ledger. Reads each score
        of the chosen runs, user and key once, in one statement.
        """
        require(STR_OR_NONE, key=key, agent=agent, model=model, thread_id=thread_id, run_id=run_id, user_id=user_id)
        require(BOOL, events=events)
        since = read_moment("since", since)
        until = read_moment("until", until)
        ids = None if run_id is None else [run_id]
        chosen = ScoreFilter(key, agent, model, thread_id, ids, user_id)
        summarize = load("chatledger.reports.summary:summarize_scores", "feedback.summary")
        summaries: Sequence[FeedbackSummary] = await summarize(self._scope, chosen, since, until, events=events)
        return summaries

    async def compare(
        self,
        key: str,
        by: str = "model",
        *,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> Sequence[FeedbackComparison]:
        """The current scores under a key, compared by "model", "agent" or "metadata.KEY" (a key of the metadata) of
        their runs: count, mean, share, the 95 % interval of the mean, and the mean cost and tokens of the runs. The
        list is in order of the values, and None comes last.

        If each of the scores is 0 or 1, the mean is the share of ones, and the interval is Wilson's; else it is that
        of Student's t. `share` is the share above 0.5, if all scores are from 0 to 1. An interval takes the scores for
        independent of each other: several scores of one run, or of one user, make it narrower than it should be.

        `agent`, `model`, `since`, `until` and `user_id` select as in `summary`. The kept scores of erased threads count
        as they do there, but not by a key of the metadata, which they do not have.

        One statement, which reads each score of the key once. By a key of the metadata, it takes a row for each run
        into memory, and a statement for 250 of them; LimitExceeded comes for different values of more than 8 Mi
        characters.
        """
        require(STR, key=key)
        require(STR_OR_NONE, agent=agent, model=model, user_id=user_id)
        moments = (read_moment("since", since), read_moment("until", until))
        chosen = ScoreFilter(key, agent, model, user_id=user_id)
        compare = load("chatledger.reports.compare:compare_scores", "feedback.compare")
        groups: Sequence[FeedbackComparison] = await compare(self._scope, key, by, chosen, moments)
        return groups


def _feedback_id(run_id: str, idempotency_key: str | None) -> str:
    return new_id() if idempotency_key is None else derived_id("feedback", run_id, idempotency_key)
