"""The table of what each format can express."""

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
        ("openai-chat", "custom messages", "no"),
        ("kosong/0.30", "signatures of reasoning", "yes"),
        ("qwen-agent", "several calls in a message", "form"),
        ("agent-service", "images by URL", "no"),
        ("agent-service", "response metadata", "yes"),
    ],
)
def test_formats_are_distinguished(name: str, thing: str, expressed: str) -> None:
    assert TABLE[name][thing] == expressed


def test_a_thing_is_not_supported_better_than_the_thing_it_needs() -> None:
    order = ["yes", "form", "no"]
    for row in TABLE.values():
        for thing, sample in SAMPLES.items():
            assert sample.needs is None or order.index(row[thing]) >= order.index(row[sample.needs])
