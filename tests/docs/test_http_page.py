"""The page of the HTTP API says what the server does."""

from __future__ import annotations

import pytest

from chatledger.server.problems import TITLES
from tests.docs import http
from tests.docs.pages import in_page


@pytest.mark.parametrize("name", http.TABLES)
def test_the_page_has_what_the_server_says(name: str) -> None:
    assert in_page(http.PAGE, name) == http.TABLES[name](), "run: python -m tests.docs.http"


def test_the_page_has_each_problem_of_the_server() -> None:
    assert set(http._STATUS) == set(TITLES) - {"Http"}
