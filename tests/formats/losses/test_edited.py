"""A program may edit messages of a format: what the format cannot express of the edit is told as a loss."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import MissingExtra
from chatledger.formats import Codec, ModelCodec, format_names, get_codec
from chatledger.formats.losses.capabilities import SAMPLES
from chatledger.models import TextPart
from tests.formats.any_messages import numbered
from tests.formats.losses.differences import problems
from tests.formats.measured import encode

EDITS: list[dict[str, Any]] = [
    {"content": None},
    {"content": [TextPart(text="one"), TextPart(text="two")]},
    {"name": "ada"},
    {"tool_calls": None, "tool_call_id": None},
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: " ".join(edit))
@pytest.mark.parametrize("name", format_names())
def test_an_edit_is_written_or_reported(name: str, edit: dict[str, Any]) -> None:
    codec = get_codec(name)
    for sample in SAMPLES.values():
        payload: Any = encode(codec, sample.alternatives[0]).payload
        for given in in_each_kind(codec, payload):
            if name == "kosong/0.23" and given is not payload:
                continue  # its objects tell an empty text from no content, which their own dumps do not
            read = numbered(codec.decode(given).messages)
            edited = [message.model_copy(update=edit) for message in read]
            encoded = encode(codec, edited)
            back = codec.decode(encoded.payload, rules="lenient").messages
            assert problems(edited, back, encoded.origins, encoded.losses, name) == []


def in_each_kind(codec: Codec, payload: Any) -> list[Any]:
    """The payload as dicts, and as objects if the classes of the format are installed: frameworks are not, here."""
    if not isinstance(codec, ModelCodec):
        return [payload]
    try:
        return [payload, codec.as_models(payload)]
    except MissingExtra:
        return [payload]
