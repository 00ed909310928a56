"""Feedback: what a score may be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from chatledger import Feedback


def test_kwargs_are_empty_unless_given() -> None:
    assert Feedback(run_id="r", key="stars", score=4) == Feedback(run_id="r", key="stars", score=4.0, kwargs={})


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 10**400, "NaN", None], ids=str)
def test_a_score_is_finite(score: Any) -> None:
    with pytest.raises(ValidationError):
        Feedback(run_id="r", key="stars", score=score)


@pytest.mark.parametrize(
    "score", ["1.1e100", 1.1e100, -1.1e100, 1.7976931348623157e308, 10**101, int(1e100) + 1, -int(1e100) - 1]
)
def test_a_score_with_which_sums_would_overflow_is_refused(score: Any) -> None:
    with pytest.raises(ValidationError, match="must be a number from -1e100 to 1e100"):
        Feedback(run_id="r", key="stars", score=score)


@pytest.mark.parametrize("score", [0, -0.0, 0.8, -3, 1e100, -1e100, 5e-324])
def test_any_score_of_a_usual_size_is_taken(score: float) -> None:
    assert math.copysign(1, Feedback(run_id="r", key="stars", score=score).score) == math.copysign(1, score)
    assert Feedback(run_id="r", key="stars", score=score).score == score


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="must not be empty"):
        Feedback(run_id="r", key="", score=4)


@pytest.mark.parametrize("key", [" ", "human feedback/☆", "\x00", "\ud800"], ids=ascii)
def test_any_other_key_is_taken(key: str) -> None:
    assert Feedback(run_id="r", key=key, score=4).key == key


def test_kwargs_are_json() -> None:
    with pytest.raises(ValidationError, match=r"\$.at: set is not JSON"):
        Feedback(run_id="r", key="stars", score=4, kwargs={"at": {1}})


def test_feedback_is_frozen() -> None:
    feedback = Feedback(run_id="r", key="stars", score=4)
    with pytest.raises(ValidationError, match="frozen"):
        feedback.score = 5.0  # type: ignore[misc]
