"""What each format is said to express."""

from __future__ import annotations

import pytest

from chatledger.formats import format_names
from chatledger.formats.capabilities import SAMPLES, capabilities

TABLE = capabilities()


def test_every_format_is_tried_with_everything() -> None:
    assert list(TABLE) == format_names()
    assert {tuple(row) for row in TABLE.values()} == {tuple(SAMPLES)}


@pytest.mark.parametrize(
    ("name", "thing", "expressed"),
    [
        ("openai-chat", "tool calls and results", True),
        ("openai-chat", "images as data", True),
        ("openai-chat", "video", False),
        ("openai-chat", "messages for the screen", False),
        ("kosong/0.30", "signatures of reasoning", True),
        ("agent-service", "images by address", False),
        ("agent-service", "metadata of the response", True),
    ],
)
def test_formats_are_told_apart(name: str, thing: str, expressed: bool) -> None:
    assert TABLE[name][thing] is expressed
