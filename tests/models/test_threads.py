"""Threads, deletions and pages."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chatledger import ChatMessage, History, Mark, Thread
from chatledger.models import Branch
from chatledger.types import Deleted, Page

THREAD = {"thread_id": "t", "created_at": "2026-01-01T00:00:00Z", "active_at": "2026-01-01T00:00:00Z"}


def test_a_thread_is_frozen() -> None:
    thread = Thread.model_validate(THREAD)
    with pytest.raises(ValidationError, match="frozen"):
        thread.title = "x"  # type: ignore[misc]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValidationError, match="'lenient', 'strict' or 'ordered'"):
        Thread.model_validate({**THREAD, "rules": "relaxed"})


@pytest.mark.parametrize("model", [Thread, Branch])
def test_a_date_without_a_zone_is_refused(model: Any) -> None:
    with pytest.raises(ValidationError, match="timezone"):
        model.model_validate({**THREAD, "created_at": "2026-01-01T00:00:00"})


def test_a_deletion_counts_its_rows() -> None:
    assert (Deleted(rows={"messages": 5, "threads": 1}).total, Deleted(rows={}).total) == (6, 0)


def test_pages_and_histories_are_read_like_lists() -> None:
    message = ChatMessage(role="user")
    assert ([*Page([1, 2])], len(Page([1, 2])), len(Page([]))) == ([1, 2], 2, 0)
    history = History("t", 0, [message], None, Mark("m"), 1)
    assert ([*history], len(history)) == ([message], 1)
