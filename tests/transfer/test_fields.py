from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chatledger.transfer.fields import find_value, read_time


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ({"a": 1}, "a", 1),
        ({"a": {"b": {"c": 1}}}, "a.b.c", 1),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", 1),
        ({"a": 1}, "a.b", None),
        ({"a": [1]}, "a.0", None),
        ([1], "a", None),
        ({"a": 1}, None, None),
    ],
)
def test_find_value(record: Any, field: str | None, value: Any) -> None:
    assert find_value(record, field) == value


@pytest.mark.parametrize(
    "value",
    [
        "2025-03-14T09:12:00.5Z",
        "2025-03-14T18:12:00.5+09:00",
        1741943520.5,
        1741943520500,
        "1741943520.5",
        "1741943520500",
    ],
)
def test_read_time(value: Any) -> None:
    assert read_time(value, "at") == datetime(2025, 3, 14, 9, 12, 0, 500_000, tzinfo=UTC)
