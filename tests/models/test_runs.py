"""Usage and its sums."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger import Usage
from chatledger.types import Run

TOKENS = st.none() | st.integers(0, 2**40)
COSTS = st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=0, max_value=10**20)
DETAILS = st.none() | st.dictionaries(st.sampled_from(["cached", "reasoning", ""]), st.integers(0, 2**40))
RUN = {"run_id": "r", "thread_id": "t", "started_at": "2026-01-01T00:00:00Z"}
USAGES = st.builds(Usage, input_tokens=TOKENS, output_tokens=TOKENS, total_tokens=TOKENS, details=DETAILS, cost=COSTS)


def test_none_is_left_out_and_zero_means_none_used() -> None:
    assert Usage() + Usage() == Usage()
    assert Usage(input_tokens=0, cost=Decimal(0)) + Usage() == Usage(input_tokens=0, cost=Decimal(0))
    assert Usage(input_tokens=0) + Usage() != Usage()


def test_a_sum_adds_field_by_field() -> None:
    left = Usage(input_tokens=1, output_tokens=2, details={"cached": 1, "reasoning": 4}, cost=Decimal("0.10"))
    right = Usage(input_tokens=3, total_tokens=5, details={"audio": 7, "cached": 2}, cost=Decimal("0.2"))
    assert left + right == Usage(
        input_tokens=4,
        output_tokens=2,
        total_tokens=5,
        details={"cached": 3, "reasoning": 4, "audio": 7},
        cost=Decimal("0.30"),
    )


def test_empty_details_are_kept() -> None:
    assert (Usage(details={}) + Usage()).details == {}


@given(USAGES, USAGES, USAGES)
def test_sums_are_exact_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Usage() == a


def test_a_cost_keeps_all_its_digits_in_a_sum() -> None:
    total = Usage(cost=Decimal("1e20")) + Usage(cost=Decimal("1e-20"))
    assert total.cost == Decimal("100000000000000000000.00000000000000000001")


@pytest.mark.parametrize(
    "fields",
    [
        {"input_tokens": -1},
        {"output_tokens": 2**63},
        {"total_tokens": 1.5},
        {"details": {"cached": -1}},
        {"cost": "NaN"},
        {"cost": "Infinity"},
        {"cost": "1e1000"},
        {"cost": "0e999999999"},
        {"cost": Decimal("0e-1001")},
        {"cost": "0e9999"},
        {"cost": "-1"},
        {"cost": -1},
        {"cost": "1_0"},
        {"cost": "\u0663"},
        {"cost": " 1"},
        {"cost": "1\n"},
        {"tokens": 1},
    ],
    ids=repr,
)
def test_a_value_that_is_not_usage_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Usage(**fields)


def test_a_cost_given_as_a_float_is_the_decimal_that_it_shows() -> None:
    assert Usage(cost=0.1).cost == Decimal("0.1")


@pytest.mark.parametrize(
    ("given", "cost"),
    [("0.0021", "0.0021"), ("+1.", "1"), (".5", "0.5"), ("1E2", "100"), ("0e999", "0e999"), (3, "3"), ("-0", None)],
)
def test_a_cost_is_a_decimal_number(given: Any, cost: str | None) -> None:
    if cost is None:
        with pytest.raises(ValidationError, match=r"must be a decimal number that is not negative"):
            Usage(cost=given)
    else:
        assert Usage(cost=given).cost == Decimal(cost)


def test_usage_and_run_are_frozen() -> None:
    usage, run = Usage(input_tokens=1), Run.model_validate(RUN)
    with pytest.raises(ValidationError, match="frozen"):
        usage.input_tokens = 2  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        run.status = "failed"  # type: ignore[misc]


def test_an_unknown_status_is_refused() -> None:
    assert Run.model_validate(RUN).status == "running"
    with pytest.raises(ValidationError, match="'running', 'completed', 'failed' or 'cancelled'"):
        Run.model_validate({**RUN, "status": "done"})
