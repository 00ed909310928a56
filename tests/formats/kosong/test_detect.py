"""A payload is recognised as kosong's only where that is certain."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import kosong
from chatledger.formats.kosong import CODEC, v0_23

NEWER, OLDER = kosong.Message(role="user", content="x"), v0_23.Message(role="user", content="x")


@pytest.mark.parametrize(
    ("payload", "newer", "older"),
    [
        ([NEWER], True, False),
        ([OLDER], False, True),
        ([NEWER, OLDER], False, False),
        ([NEWER.model_dump()], True, False),
        ([NEWER.model_dump(exclude_none=True)], False, False),
        ([OLDER.model_dump(), v0_23.Message(role="assistant", content="").model_dump()], False, True),
        ([], False, False),
        ("x", False, False),
        ([1], False, False),
        (NEWER, False, False),
    ],
)
def test_only_sure_payloads_are_recognised(payload: Any, newer: bool, older: bool) -> None:
    assert (CODEC.recognises(payload), v0_23.CODEC.recognises(payload)) == (newer, older)
