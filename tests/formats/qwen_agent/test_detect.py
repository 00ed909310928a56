"""A payload is recognised as Qwen-Agent's only where that is certain."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.qwen_agent import CODEC, Message


@pytest.mark.parametrize(
    ("payload", "sure"),
    [
        ([Message("user", "a")], True),
        ([{"role": "user", "content": "a"}, Message("user", "a")], True),
        ([{"role": "user", "content": [{"text": "a"}]}], True),
        ([{"role": "function", "content": "a", "extra": {"function_id": "1"}}], True),
        ([{"role": "user", "content": "a"}], False),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}]}], False),
        ([{"role": "human", "content": [{"text": "a"}]}], False),
        ([{"role": "user", "content": [{"text": "a"}]}, {"content": 3}], False),
        ([], False),
        ("text", False),
        ({"role": "user"}, False),
        ([3], False),
    ],
)
def test_recognises_only_what_is_surely_qwen_agent(payload: Any, sure: bool) -> None:
    assert CODEC.recognises(payload) is sure


def test_recognises_the_real_objects(upstream: Any) -> None:
    assert CODEC.recognises([upstream.Message("user", "a")])
