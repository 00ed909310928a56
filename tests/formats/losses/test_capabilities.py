"""What each format is said to express."""

from __future__ import annotations

import pytest

from chatledger.formats import format_names
from chatledger.formats.losses.capabilities import SAMPLES, capabilities

TABLE = capabilities()


def test_every_format_is_tried_with_everything() -> None:
    assert list(TABLE) == format_names()
    assert {tuple(row) for row in TABLE.values()} == {tuple(SAMPLES)}


@pytest.mark.parametrize(
    ("name", "thing", "expressed"),
    [
        ("openai-chat", "tool calls and results", "yes"),
        ("openai-chat", "images as data", "yes"),
        ("openai-chat", "video", "no"),
        ("openai-chat", "messages for the screen", "no"),
        ("kosong/0.30", "signatures of reasoning", "yes"),
        ("qwen-agent", "several calls in a message", "form"),
        ("agent-service", "images by address", "no"),
        ("agent-service", "metadata of the response", "yes"),
    ],
)
def test_formats_are_told_apart(name: str, thing: str, expressed: str) -> None:
    assert TABLE[name][thing] == expressed


def test_what_needs_something_else_is_no_better_than_that() -> None:
    order = ["yes", "form", "no"]
    for row in TABLE.values():
        for thing, sample in SAMPLES.items():
            assert sample.needs is None or order.index(row[thing]) >= order.index(row[sample.needs])
