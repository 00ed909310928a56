"""The counts of a ledger, in all, by day and by model, on both databases."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import update

from chatledger import Feedback, InvalidArgument, Ledger, Usage
from chatledger.storage.schema.tables import messages, runs
from chatledger.types import LedgerStats
from tests.conversations import assistant, user

FIRST, SECOND = datetime(2025, 6, 1, 12, tzinfo=UTC), datetime(2025, 6, 2, 12, tzinfo=UTC)


async def move(ledger: Ledger, run_id: str, moment: datetime) -> None:
    """The run and its messages, which are of now."""
    tenant = ledger._scope.tenant.name
    await ledger._scope.write(
        lambda sql: [
            sql.execute(
                update(table).where(table.c.tenant_id == tenant, table.c.run_id == run_id).values({name: moment})
            )
            for table, name in ((runs, "started_at"), (messages, "created_at"))
        ]
    )


@pytest.fixture
async def counted(ledger: Ledger) -> Ledger:
    """Two turns of Ada's in two threads, and one turn of nobody's without a run."""
    for thread_id, run_id, model, moment in (("a", "r1", "small", FIRST), ("b", "r2", "large", SECOND)):
        await ledger.user("ada").threads.create(thread_id)
        await ledger.runs.start(thread_id, run_id=run_id, model=model)
        await ledger.messages.append(thread_id, [user("?"), assistant("!")], run_id=run_id)
        await ledger.runs.finish(run_id, status="completed", usage=Usage(input_tokens=10, output_tokens=1))
        await ledger.feedback.record(Feedback(run_id=run_id, key="ok", score=0, created_at=moment))
        await ledger.feedback.record(Feedback(run_id=run_id, key="ok", score=1, created_at=moment))
        await move(ledger, run_id, moment)
    await ledger.runs.start("b", run_id="r3", model="large")
    await ledger.runs.finish("r3", status="failed", usage=Usage(cost=Decimal("0.5")))
    await move(ledger, "r3", SECOND)
    await ledger.threads.create("n")
    await ledger.messages.append("n", [user("?")], run_id="r4")
    await move(ledger, "r4", SECOND)
    await ledger.user("bob").threads.create("empty")
    return ledger


async def test_all_is_counted(counted: Ledger) -> None:
    tokens = {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22}
    total = LedgerStats(
        messages=5, threads=3, users=1, runs=4, **tokens, cost=Decimal("0.5"), runs_without_cost=3, scores=2
    )
    assert await counted.stats() == [total]
    assert (await counted.stats(prices=lambda *_: Decimal(1)))[0].cost == Decimal("2.5")


async def test_an_empty_ledger_has_a_sum_and_no_days(ledger: Ledger) -> None:
    assert await ledger.stats() == [LedgerStats(messages=0, threads=0, users=0, runs=0, runs_without_cost=0, scores=0)]
    assert await ledger.stats("day") == []


async def test_by_day(counted: Ledger) -> None:
    found = [
        (one.day, one.messages, one.threads, one.users, one.runs, one.scores) for one in await counted.stats("day")
    ]
    assert found == [(date(2025, 6, 1), 2, 1, 1, 1, 1), (date(2025, 6, 2), 3, 2, 1, 3, 1)]


async def test_by_model(counted: Ledger) -> None:
    found = [(one.model, one.messages, one.threads, one.runs, one.scores) for one in await counted.stats("model")]
    assert found == [("large", 2, 1, 2, 1), ("small", 2, 1, 1, 1), (None, 1, 1, 1, 0)]


@pytest.mark.parametrize(
    ("chosen", "counts"),
    [
        ({"since": SECOND}, (3, 2, 3, 1)),
        ({"until": SECOND}, (2, 1, 1, 1)),
    ],
)
async def test_only_the_chosen_count(counted: Ledger, chosen: dict[str, Any], counts: tuple[int, ...]) -> None:
    [total] = await counted.stats(**chosen)
    assert (total.messages, total.threads, total.runs, total.scores) == counts


async def test_a_users_ledger_counts_the_users_own(counted: Ledger) -> None:
    [total] = await counted.user("ada").stats()
    assert (total.messages, total.threads, total.runs, total.scores) == (4, 2, 3, 2)
    [nothing] = await counted.user("nobody").stats()
    assert (nothing.messages, nothing.threads, nothing.runs, nothing.scores) == (0, 0, 0, 0)


@pytest.mark.parametrize("by", ["week", "", 1])
async def test_another_word_is_refused(ledger: Ledger, by: Any) -> None:
    with pytest.raises(InvalidArgument, match="by"):
        await ledger.stats(by)
