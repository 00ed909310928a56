"""A payload is recognised as a message file's only where that is certain."""

from __future__ import annotations

from chatledger.formats import recognise
from chatledger.formats.message_file import CODEC
from tests.formats.message_file.examples import weather


def test_items_are_recognised_as_objects_and_as_dicts() -> None:
    assert recognise([weather()]) is CODEC
    assert recognise([weather().to_dict()]) is CODEC
    assert not CODEC.recognises([{"type": "message", "role": "user", "content": []}])
