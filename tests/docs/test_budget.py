"""The documentation stays as short as it is, and says no more twice than it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import budget
from tests.docs.budget import BUDGET, COUNTS, places


@pytest.mark.parametrize("name", COUNTS)
def test_the_count_is_within_its_budget(name: str) -> None:
    """`python -m tests.docs.budget` prints all. A bound falls with each cut, and rises only with a reason."""
    assert COUNTS[name]() <= BUDGET["most"][name]


def test_the_budget_has_the_counts() -> None:
    assert set(BUDGET["most"]) == set(COUNTS)


@pytest.mark.parametrize("fact", BUDGET["places"])
def test_a_fact_stands_in_few_places(fact: str) -> None:
    assert 1 <= len(places(fact)) <= BUDGET["places"][fact]


def test_a_copy_a_long_sentence_and_a_figure_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    copied = "the ledger keeps every word that you give it today"
    first.write_text(f"# First\n\nHere {copied}. It takes 5 ms.\n\n" + "word " * 31 + ".\n", encoding="utf-8")
    second.write_text(f"# Second\n\nSo {copied}, in `tests/one.py`.\n", encoding="utf-8")
    monkeypatch.setattr(budget, "in_navigation", lambda: [first, second])
    monkeypatch.setattr(budget, "to_read", lambda: [first, second])
    assert (budget.copies(), budget.long_sentences(), budget.figures(), budget.inner_names()) == (1, 1, 1, 1)
