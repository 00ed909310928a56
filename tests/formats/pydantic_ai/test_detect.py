"""Only requests and responses with their parts are taken for Pydantic AI's."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import recognise
from chatledger.formats.pydantic_ai import CODEC
from tests.formats.pydantic_ai.samples import history

TEXT = {"part_kind": "text", "content": "a"}


def test_a_history_is_recognised() -> None:
    assert recognise(history()).name == "pydantic-ai"
    assert all(recognise([message]).name == "pydantic-ai" for message in history())


@pytest.mark.parametrize(
    "payload",
    [
        "text",
        [],
        [None],
        [1, *history()],
        [{"kind": "request", "parts": []}],
        [{"kind": "later", "parts": [TEXT]}],
        [{"kind": ["request"], "parts": [TEXT]}],
        [{"kind": "response", "parts": {}}],
        [{"kind": "response", "parts": ["a"]}],
        [{"kind": "response", "parts": [{"part_kind": 1}]}],
        [{"role": "user", "parts": [{"text": "a"}]}],
        {"messages": history()},
    ],
)
def test_others_are_not(payload: Any) -> None:
    assert not CODEC.recognises(payload)
