"""Scores by model, agent and metadata, with their intervals, against statsmodels, on both databases."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, event
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from chatledger import Feedback, InvalidArgument, Ledger, Usage
from chatledger.errors import LimitExceeded
from chatledger.reports import usage as usage_rows
from chatledger.types import FeedbackComparison
from tests.conftest import KEYS, Database

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


async def add_run(
    ledger: Ledger, run_id: str, *scores: Feedback | float, usage: Usage | None = None, **fields: Any
) -> None:
    """A run with scores under the key "ok"."""
    await ledger.runs.start("t", run_id=run_id, **fields)
    await ledger.runs.finish(run_id, status="completed", usage=usage)
    for number, score in enumerate(scores):
        if not isinstance(score, Feedback):
            score = Feedback(run_id=run_id, key="ok", score=score, user_id=f"u{number}")
        await ledger.feedback.record(score)


async def test_yes_and_no_by_model(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    usage = Usage(input_tokens=10, output_tokens=2, cost=Decimal("0.1"))
    await add_run(ledger, "r1", 1, 1, 0, model="large", usage=usage)
    await add_run(ledger, "r2", 1, model="large", usage=Usage(total_tokens=100, cost=Decimal("0.2")))
    await add_run(ledger, "r3", 0, model="small", usage=Usage(input_tokens=1))
    await add_run(ledger, "r4", 0)
    await add_run(ledger, "r5", model="none scored")
    found = await ledger.feedback.compare("ok")
    large, small = (proportion_confint(yes, count, method="wilson") for yes, count in ((3, 4), (0, 1)))
    assert (found[0].low, found[0].high) == pytest.approx(large)
    assert (found[1].low, found[1].high) == pytest.approx(small, abs=1e-12)
    assert [one.model_copy(update={"low": None, "high": None}) for one in found] == [
        FeedbackComparison(
            value="large",
            count=4,
            mean=0.75,
            share=0.75,
            method="wilson",
            runs=2,
            mean_cost=Decimal("0.15"),
            mean_tokens=56,
            runs_without_cost=0,
        ),
        FeedbackComparison(value="small", count=1, mean=0, share=0, method="wilson", runs=1, runs_without_cost=1),
        FeedbackComparison(value=None, count=1, mean=0, share=0, method="wilson", runs=1, runs_without_cost=1),
    ]


@pytest.mark.parametrize("metadata", [False, True])
async def test_numbers_have_the_interval_of_students_t(ledger: Ledger, metadata: bool) -> None:
    """Large scores that are close together, in groups far from each other."""
    await ledger.threads.create("t")
    chance = random.Random(1)
    given: dict[str, list[float]] = defaultdict(list)
    for number in range(60):
        model = f"m{number % 3}"
        scores = [1e6 * (number % 3) + chance.gauss(0, 1) for _ in range(1 + number % 2)]
        given[model] += scores
        fields: dict[str, Any] = {"metadata": {"version": model}} if metadata else {"model": model}
        await add_run(ledger, f"r{number}", *scores, **fields)
    for one in await ledger.feedback.compare("ok", by="metadata.version" if metadata else "model"):
        expected = DescrStatsW(given[str(one.value)])
        assert (one.count, one.method, one.share) == (len(given[str(one.value)]), "t", None)
        assert one.mean == pytest.approx(expected.mean, rel=1e-12)
        assert (one.low, one.high) == pytest.approx(expected.tconfint_mean(), abs=1e-3)
        assert one.low != pytest.approx(one.high, abs=1e-2)


async def test_numbers_from_0_to_1_have_a_share_above_one_half(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r1", 0.5, 0.6, 1, agent="a")
    await add_run(ledger, "r2", 0.4, agent="b")
    first, second = await ledger.feedback.compare("ok", by="agent")
    assert (first.method, first.share) == ("t", 2 / 3)
    assert first.mean == pytest.approx(0.7)
    assert (second.share, second.low, second.high) == (0, None, None)


async def test_equal_scores_have_an_interval_without_width(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r1", 0.1, 0.1, 0.1, model="a")
    await add_run(ledger, "r2", 5, 4, model="b")
    equal, other = await ledger.feedback.compare("ok")
    assert equal.low == equal.mean == equal.high
    assert other.low != other.high


@pytest.mark.parametrize("by", ["model", "metadata.v"])
@pytest.mark.parametrize("scores", [(1e100, -1e100), (1e100, 1e100), (5e-324, 0.25e-200, 0), (1e100, 5e-324)], ids=str)
async def test_the_largest_and_the_smallest_scores_have_a_mean(
    ledger: Ledger, by: str, scores: tuple[float, ...]
) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r", *scores, model="m", metadata={"v": "m"})
    [found] = await ledger.feedback.compare("ok", by)
    [summary] = await ledger.feedback.summary()
    assert (found.value, found.count, summary.count) == ("m", len(scores), len(scores))
    mean = sum(scores) / len(scores)
    assert found.mean == pytest.approx(mean)
    assert summary.mean == pytest.approx(mean)
    assert (summary.min, summary.max) == (min(scores), max(scores))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= mean <= found.high


async def test_only_current_scores_of_the_key_count(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r", 0, model="a")
    await ledger.feedback.record(Feedback(run_id="r", key="ok", score=1, user_id="u0"))
    await ledger.feedback.record(Feedback(run_id="r", key="other", score=0))
    again = await ledger.feedback.record(Feedback(run_id="r", key="ok", score=0, user_id="gone"))
    await ledger.feedback.remove(again.feedback_id or "")
    [one] = await ledger.feedback.compare("ok")
    assert (one.count, one.mean) == (1, 1)
    assert await ledger.feedback.compare("absent") == []


@pytest.mark.parametrize(
    ("chosen", "counts"),
    [
        ({"agent": "x"}, [("a", 2)]),
        ({"model": "b"}, [("b", 1)]),
        ({"user_id": "u1"}, [("a", 1)]),
        ({"since": NOON + timedelta(seconds=1)}, [("a", 2), ("b", 1)]),
        ({"until": NOON + timedelta(seconds=1)}, [(None, 1)]),
        ({"since": NOON, "until": NOON}, []),
    ],
)
async def test_only_the_chosen_scores_count(ledger: Ledger, chosen: dict[str, Any], counts: list[Any]) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r1", 1, 0, model="a", agent="x")
    await add_run(ledger, "r2", 1, model="b", agent="y")
    await add_run(ledger, "r3", Feedback(run_id="r3", key="ok", score=1, created_at=NOON))
    assert [(one.value, one.count) for one in await ledger.feedback.compare("ok", **chosen)] == counts


async def test_kept_scores_count_where_summary_counts_them(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    await add_run(ledger, "r1", 1, 0, model="a", metadata={"v": 1}, usage=Usage(cost=Decimal(1)))
    await ledger.erasures.erase(("thread", "t"), keep_scores=True)
    await ledger.user("ada").threads.create("t2")
    await ledger.runs.start("t2", run_id="r2", model="a")
    await ledger.feedback.record(Feedback(run_id="r2", key="ok", score=1))
    [one] = await ledger.feedback.compare("ok")
    assert (one.count, one.runs, one.mean, one.mean_cost) == (3, 1, 2 / 3, None)
    assert [one.count for one in await ledger.feedback.compare("ok", by="metadata.v")] == [1]
    assert [one.count for one in await ledger.user("ada").feedback.compare("ok")] == [1]


async def test_a_users_ledger_compares_the_scores_of_the_users_own_threads(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    await add_run(ledger, "r", 1, model="a")
    assert [one.count for one in await ledger.user("ada").feedback.compare("ok")] == [1]
    assert await ledger.user("bob").feedback.compare("ok") == []
    assert await ledger.tenant("other").feedback.compare("ok") == []


async def test_metadata_is_read_on_an_encrypted_ledger(database: Database) -> None:
    async with database.open(encryption=KEYS) as ledger:
        await ledger.threads.create("t")
        await add_run(ledger, "r1", 1, metadata={"prompt": "v1"})
        await add_run(ledger, "r2", 0, 1, metadata={"prompt": ["v", 2]})
        await add_run(ledger, "r3", 0, metadata={"prompt": ["v", 2]}, usage=Usage(cost=Decimal("0.5")))
        await add_run(ledger, "r4", 0)
        found = await ledger.feedback.compare("ok", by="metadata.prompt")
        assert [(one.value, one.count, one.runs, one.mean_cost) for one in found] == [
            (["v", 2], 3, 2, Decimal("0.5")),
            ("v1", 1, 1, None),
            (None, 1, 1, None),
        ]


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """The statements that are sent."""
    sent: list[str] = []

    def listen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    yield sent
    event.remove(Engine, "before_cursor_execute", listen)


async def test_it_is_one_statement(ledger: Ledger, seen: list[str]) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "r", 1, 0, model="a")
    seen.clear()
    for by in ("model", "agent"):
        assert len(await ledger.feedback.compare("ok", by=by)) == 1
        assert len(await ledger.runs.usage(by=by, prices=True)) == 1
    assert len(seen) == 4


async def test_metadata_is_read_in_portions(ledger: Ledger, seen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be much longer than the values to group by, and all of it was in memory at once."""
    monkeypatch.setattr(usage_rows, "_PORTION", 10)
    await ledger.threads.create("t")
    for number in range(25):
        await add_run(ledger, f"r{number}", 1, metadata={"v": number % 2, "w": "x" * 1_000})
    for read in (partial(ledger.feedback.compare, "ok"), ledger.runs.usage):
        seen.clear()
        found = await read(by="metadata.v")
        assert [one.runs for one in found] == [13, 12]
        assert len([statement for statement in seen if "metadata" in statement]) == 3


async def test_different_values_of_too_much_are_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them were in memory, parsed, before anything was refused. Equal ones count once."""
    monkeypatch.setattr(usage_rows, "_MOST_VALUES", 2_000)
    await ledger.threads.create("t")
    for number in range(5):
        await add_run(ledger, f"r{number}", 1, metadata={"same": "x" * 1_000, "own": f"{number}" * 1_000})
    for read in (partial(ledger.feedback.compare, "ok"), ledger.runs.usage):
        assert [one.runs for one in await read(by="metadata.same")] == [5]
        with pytest.raises(LimitExceeded, match="characters of the values to group by"):
            await read(by="metadata.own")


@pytest.mark.parametrize("by", ["user", "metadata.", "", None, ["model"]])
async def test_another_word_is_refused(ledger: Ledger, by: Any) -> None:
    with pytest.raises(InvalidArgument, match="by"):
        await ledger.feedback.compare("ok", by=by)
