"""Payloads come back equal: value by value, in key order and with unknown keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger.errors import FormatError
from chatledger.formats.google_adk import CODEC
from chatledger.models.json import same_json
from tests.formats.google_adk.samples import SAMPLES
from tests.formats.google_adk.strategies import events
from tests.formats.measured import encode
from tests.hostile.payloads import mutated

EXAMPLES = settings(max_examples=50, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(st.lists(events, max_size=3), st.sampled_from(["strict", "lenient"]))
def test_a_payload_comes_back_equal(payload: list[Any], rules: Any) -> None:
    decoded = CODEC.decode(payload, rules=rules)
    encoded = encode(CODEC, decoded.messages)
    assert same_json(encoded.payload, payload)
    assert encoded.losses == []


@EXAMPLES
@given(mutated("google-adk"))
def test_a_damaged_payload_is_refused_or_comes_back_equal(payload: Any) -> None:
    try:
        decoded = CODEC.decode(payload, rules="lenient")
    except FormatError:
        return
    assert same_json(encode(CODEC, decoded.messages).payload, list(payload))


@pytest.mark.parametrize("parts", [[None], [{"text": "a"}, None], [None, {"function_call": {"name": "f", "args": {}}}]])
@pytest.mark.parametrize("content", [{}, {"role": "model"}])
def test_null_parts_come_back(parts: list[Any], content: dict[str, Any]) -> None:
    payload = [{"invocation_id": "", "id": "", "branch": "", "content": {**content, "parts": parts}}]
    assert same_json(encode(CODEC, CODEC.decode(payload, rules="lenient").messages).payload, payload)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_comes_back_equal_and_is_recognised(name: str) -> None:
    payload = SAMPLES[name]
    assert CODEC.recognises(payload)
    assert same_json(encode(CODEC, CODEC.decode(payload).messages).payload, payload)
