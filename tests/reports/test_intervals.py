"""The intervals, against statsmodels and SciPy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from chatledger.reports.intervals import student, t_quantile, wilson


@pytest.mark.parametrize("freedom", [*range(1, 400), 1_000, 10**6, 10**9])
def test_the_quantile_of_students_t(freedom: int) -> None:
    assert t_quantile(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-10)


@given(st.integers(1, 10**6).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_the_interval_of_a_share(counts: tuple[int, int]) -> None:
    assert wilson(*counts) == pytest.approx(proportion_confint(*counts, method="wilson"), abs=1e-12)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50).filter(lambda numbers: len(set(numbers)) > 1))
def test_the_interval_of_a_mean(numbers: list[float]) -> None:
    expected = DescrStatsW(numbers)
    found = student(len(numbers), expected.mean, expected.var_ddof(1))
    assert found == pytest.approx(expected.tconfint_mean(), rel=1e-9, abs=1e-9)


def test_a_single_number_has_no_interval() -> None:
    assert student(1, 3.0, 0.0) is None


def test_a_share_of_all_or_none_ends_there() -> None:
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[1] == 1
