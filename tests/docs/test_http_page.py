"""The page of the HTTP API says what the server does."""

from __future__ import annotations

from chatledger.server.problems import STATUSES, TITLES


def test_the_page_has_each_problem_of_the_server() -> None:
    assert set(STATUSES) == set(TITLES) - {"Http"}
