"""Moments: with a zone, kept as UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger import ChatMessage, Feedback


def kept(moment: Any) -> datetime | None:
    return ChatMessage(role="user", created_at=moment).created_at


ZONES = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES))  # noqa: DTZ001 - Hypothesis adds them
def test_a_moment_is_kept_as_the_same_moment_in_utc(moment: datetime) -> None:
    assert kept(moment) == moment
    assert (kept(moment) or moment).tzinfo is UTC


@pytest.mark.parametrize(
    "moment",
    [datetime(2026, 3, 1), "2026-03-01T12:00:00", "2026-03-01"],  # noqa: DTZ001 - what is refused
    ids=repr,
)
def test_a_date_without_a_zone_is_refused(moment: Any) -> None:
    with pytest.raises(ValidationError):
        kept(moment)
    with pytest.raises(ValidationError):
        Feedback(run_id="r", key="k", score=1, created_at=moment)


def test_text_with_a_zone_is_read() -> None:
    assert kept("2026-03-01T12:00:00.000001+05:30") == datetime(2026, 3, 1, 6, 30, 0, 1, UTC)


def test_the_hour_that_a_clock_shows_twice_is_two_moments() -> None:
    berlin = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert kept(berlin) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert kept(berlin.replace(fold=1)) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
EAST, WEST = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))


@pytest.mark.parametrize("moment", [FIRST, LAST], ids=str)
def test_the_first_and_the_last_moment_are_kept(moment: datetime) -> None:
    assert kept(moment) == moment


@pytest.mark.parametrize("moment", [FIRST.replace(tzinfo=EAST), LAST.replace(tzinfo=WEST)], ids=str)
def test_a_moment_outside_the_years_of_utc_is_refused(moment: datetime) -> None:
    with pytest.raises(ValidationError, match="outside the years 1 to 9999 in UTC"):
        kept(moment)


def test_the_edges_that_fit_in_utc_are_kept() -> None:
    assert kept(FIRST.replace(tzinfo=WEST)) == FIRST + timedelta(hours=1)
    assert kept(LAST.replace(tzinfo=EAST)) == LAST - timedelta(hours=1)
