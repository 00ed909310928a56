"""Decoders under payloads that nobody means well with: they decode or raise FormatError, and what was decoded is
written by every format. `make fuzz` looks further, guided by coverage, with the same targets.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger.formats import format_names
from tests.hostile.payloads import anything, mutated
from tests.hostile.targets import decode, recognise_any, write_everywhere

RULES = st.sampled_from(["lenient", "strict"])
slowly = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", format_names())
@slowly
@given(data=st.data(), rules=RULES)
def test_a_payload_with_something_wrong_in_it(name: str, data: st.DataObject, rules: Any) -> None:
    payload = data.draw(mutated(name))
    recognise_any(payload)
    write_everywhere(decode(name, payload, rules))


@slowly
@given(
    payload=anything
    | st.lists(anything, max_size=3)
    | st.fixed_dictionaries({"messages": st.lists(anything, max_size=2)})
    | st.fixed_dictionaries({"input": anything, "system": anything}),
    rules=RULES,
)
def test_a_payload_of_anything(payload: Any, rules: Any) -> None:
    recognise_any(payload)
    for name in format_names():
        write_everywhere(decode(name, payload, rules))
