"""The benchmarks run: every case once or twice, for what it says and not for how long it takes."""

from __future__ import annotations

import pytest
from benchmarks import postgres, seed, sqlite
from benchmarks.cases import Extent, Outcome
from benchmarks.measure import Rounds, Sample
from benchmarks.report import as_markdown, as_text

from tests.conftest import Database

TINY = Extent(
    lengths=(0, 1_000),
    rounds=Rounds(count=8, seconds=5, warm_up=1),
    loads=Rounds(count=8, seconds=5, warm_up=1),
    slices=1,
    slice_seconds=0.1,
    imports=Rounds(count=2, seconds=5, warm_up=0),
    starts=2,
    size_turns=10,
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "SHORT_THREADS", 20)
    for module in ("cases", "postgres", "sqlite"):
        monkeypatch.setattr(f"benchmarks.{module}.WRITERS", 2)


def cases(outcome: Outcome) -> set[str]:
    return {row.case for row in outcome.rows}


async def test_all_cases_on_postgresql_near_and_far(pg_database: Database) -> None:
    outcome = Outcome("PostgreSQL")
    await postgres._main(pg_database.url, TINY, outcome)
    near = {case for case in cases(outcome) if not case.startswith(postgres.AWAY)}
    assert near >= {
        "append at 1,000",
        "load 1,000",
        "last 50 of 1,000",
        "2 writers, own threads",
        "memory of iterate()",
    }
    assert {f"{postgres.AWAY}{case}" for case in near - {"memory of iterate()"}} <= cases(outcome)
    assert sorted(outcome.plots) == ["1 ms away, append of one turn", "append of one turn"]


@pytest.mark.parametrize("name", ["append, load, writers", "bytes per turn"])
def test_the_cases_on_sqlite(name: str) -> None:
    outcome = sqlite.sections(TINY)[name]()
    assert outcome.rows
    assert len(as_text(outcome.title, outcome.rows).splitlines()) == len(outcome.rows) + 5
    assert len(as_markdown(outcome.rows).splitlines()) == len(outcome.rows) + 2


def test_a_ratio_is_of_medians_and_says_how_far_to_trust_it() -> None:
    ratio = Sample([2.0, 2.0, 2.0, 4.0, 2.0]).ratio(Sample([1.0, 2.0, 1.0, 1.0, 1.0]))
    assert (ratio.value, ratio.low, ratio.high) == (2.0, 1.0, 4.0)
