"""Feedback: scores on runs. 4 → 5 → 4 stars is three records, of which the latest counts."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from chatledger.models.base import Model, Text, UtcDatetime
from chatledger.models.json import JsonObject


def _not_empty(key: str) -> str:
    # Pydantic's min_length counts characters, and refuses text with a lone surrogate on the way.
    if not key:
        raise ValueError("must not be empty")
    return key


_LARGEST = 1e100
"""Sums of the squares of as many of them as a database holds are still numbers."""


def _not_too_large(score: Any) -> Any:
    if isinstance(score, (int, float)) and abs(score) > _LARGEST:
        raise ValueError("must be a number from -1e100 to 1e100")
    return score


_BOUNDS = Field(allow_inf_nan=False, json_schema_extra={"minimum": -_LARGEST, "maximum": _LARGEST})
Score: TypeAlias = Annotated[float, _BOUNDS, BeforeValidator(_not_too_large), AfterValidator(_not_too_large)]
"""A score. It is compared before it is a float too, since an integer beyond the bound may become the bound."""


class Feedback(Model):
    """A score under a key, on a run, on one message of its thread, or on one call of that message."""

    run_id: Text
    """The run that is scored."""
    key: Annotated[Text, AfterValidator(_not_empty)]
    """What is scored, such as `thumb` or `helpfulness`. Not empty."""
    score: Score
    """The score, a number from -1e100 to 1e100."""
    kwargs: JsonObject = Field(default_factory=dict)
    """Further data, such as a comment or a correction."""
    author: Text | None = None
    """The name of the person or the program that gave the score."""
    source: Text | None = None
    """The place where the score was given, such as `ui` or `eval`."""
    message_id: Text | None = None
    """The message of the run's thread that is scored; None if the score is for the whole run."""
    feedback_id: Text | None = None
    """The id of the score, unique in its tenant, of 1 to 512 bytes. `feedback.record` makes one if there is none."""
    created_at: UtcDatetime | None = None
    """The time of the score in UTC. `feedback.record` sets the present time if there is none."""
    user_id: Text | None = None
    """The user whose score it is. A later score of the same user, target and key counts in its place. All scores
    without a user count as one user's. On a user's ledger, `feedback.record` fills in that user.
    """
    call_index: Annotated[int, Field(ge=0)] | None = None
    """The call of the message that is scored, counted from 0; None for the message itself. Needs a `message_id`."""
    retracted_at: UtcDatetime | None = None
    """The time when `feedback.remove` withdrew the score, in UTC; None if it was not withdrawn."""


class FeedbackSummary(Model):
    """The count, mean, minimum and maximum of the scores of one key."""

    key: Text
    """The key of the scores."""
    count: int
    """The number of scores."""
    mean: float
    """The arithmetic mean of the scores."""
    min: float
    """The lowest score."""
    max: float
    """The highest score."""
