"""Feedback: scores on runs. 4 → 5 → 4 stars is three records, of which the latest counts."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import JsonObject


def _not_empty(key: str) -> str:
    # Pydantic's min_length counts characters, and refuses text with a lone surrogate on the way.
    if not key:
        raise ValueError("must not be empty")
    return key


class Feedback(Model):
    """A score on a run under a key. `message_id` points it at one message of the run's thread, and `call_index` at one
    call of that message, counted from 0.

    `kwargs` holds more data, such as a comment or a correction. `author` is the name of who gave the score, `source`
    says where (ui, eval, …). `user_id` says whose score it is; a user's later score of the same target and key replaces
    it. Scores without a `user_id` are all one user's. `retracted_at` is set by `ledger.feedback.retract`.
    """

    run_id: Text
    key: Annotated[Text, AfterValidator(_not_empty)]
    score: Annotated[float, Field(allow_inf_nan=False)]
    kwargs: JsonObject = Field(default_factory=dict)
    author: Text | None = None
    source: Text | None = None
    message_id: Text | None = None
    feedback_id: Text | None = None
    created_at: UtcDatetime | None = None
    user_id: Text | None = None
    call_index: Annotated[int, Field(ge=0)] | None = None
    retracted_at: UtcDatetime | None = None


class FeedbackSummary(Model):
    """The count, mean, minimum and maximum of the scores of one key."""

    key: Text
    count: int
    mean: float
    min: float
    max: float
