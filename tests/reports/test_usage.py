"""The usage of runs: exact sums by the database, on both databases, and estimates where a run has no cost."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import update

from chatledger import InvalidArgument, Ledger, Usage
from chatledger.errors import DamagedCell
from chatledger.storage.schema.tables import runs
from chatledger.types import UsageSummary
from tests.conftest import KEYS, Database
from tests.storage.raw import query

JUNE = datetime(2025, 6, 1, 23, 59, 59, 999_999, tzinfo=UTC)
"""The last moment of a day."""


async def start_at(ledger: Ledger, run_id: str, moment: datetime) -> None:
    """A run starts now, so its time is moved."""
    tenant = ledger._scope.tenant.name
    here = (runs.c.tenant_id == tenant, runs.c.run_id == run_id)
    await ledger._scope.write(lambda sql: sql.execute(update(runs).where(*here).values(started_at=moment)))


async def add_run(ledger: Ledger, thread_id: str, run_id: str, **fields: Any) -> None:
    usage, status, at = fields.pop("usage", None), fields.pop("status", "completed"), fields.pop("at", JUNE)
    await ledger.runs.start(thread_id, run_id=run_id, **fields)
    if status != "running":
        await ledger.runs.finish(run_id, status=status, usage=usage)
    await start_at(ledger, run_id, at)


@pytest.fixture
async def used(ledger: Ledger) -> Ledger:
    """Five runs of two users and two models, on two days."""
    await ledger.user("ada").threads.create("a")
    await ledger.user("bob").threads.create("b")
    await ledger.threads.create("n")
    both = {"metadata": {"prompt": "v2", "n": 1}}
    usage = Usage(input_tokens=100, output_tokens=10, cost=Decimal("0.1"))
    await add_run(ledger, "a", "r1", agent="x", model="small", usage=usage, metadata={"prompt": "v1"})
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=7, cost=Decimal("0.2"))
    await add_run(ledger, "a", "r2", agent="x", model="small", usage=usage, status="failed", **both)
    await add_run(
        ledger, "a", "r3", agent="y", model="large", usage=Usage(input_tokens=5), at=JUNE + timedelta(1), **both
    )
    usage = Usage(output_tokens=3, cost=Decimal("1e-30"))
    await add_run(ledger, "b", "r4", model="small", usage=usage, at=JUNE + timedelta(microseconds=1))
    await add_run(ledger, "n", "r5", status="running")
    return ledger


async def test_the_sum_of_all_runs_is_exact(used: Ledger) -> None:
    [total] = await used.runs.usage()
    assert total == UsageSummary(
        runs=5,
        failed=1,
        input_tokens=106,
        output_tokens=15,
        total_tokens=110 + 7 + 5 + 3,
        cost=Decimal("0.300000000000000000000000000001"),
        runs_without_cost=2,
    )


async def test_no_runs_are_one_sum_or_no_group(ledger: Ledger) -> None:
    assert await ledger.runs.usage() == [UsageSummary(runs=0, failed=0, runs_without_cost=0)]
    assert await ledger.runs.usage(by=("user", "day")) == []


async def test_runs_are_grouped_by_user_model_and_day_in_utc(used: Ledger) -> None:
    found = await used.runs.usage(by=("user", "model", "day"))
    assert [(one.user_id, one.model, one.day, one.runs, one.cost) for one in found] == [
        ("ada", "large", date(2025, 6, 2), 1, None),
        ("ada", "small", date(2025, 6, 1), 2, Decimal("0.3")),
        ("bob", "small", date(2025, 6, 2), 1, Decimal("1e-30")),
        (None, None, date(2025, 6, 1), 1, None),
    ]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("agent", [("x", 2), ("y", 1), (None, 2)]),
        ("thread", [("a", 3), ("b", 1), ("n", 1)]),
        ("status", [("completed", 3), ("failed", 1), ("running", 1)]),
        ("metadata.prompt", [({"prompt": "v1"}, 1), ({"prompt": "v2"}, 2), ({"prompt": None}, 2)]),
        ("metadata.n", [({"n": 1}, 2), ({"n": None}, 3)]),
    ],
)
async def test_runs_are_grouped_by(used: Ledger, by: str, expected: list[Any]) -> None:
    field = {"thread": "thread_id"}.get(by, by.partition(".")[0])
    assert [(getattr(one, field), one.runs) for one in await used.runs.usage(by=by)] == expected


async def test_a_word_of_the_metadata_goes_with_other_words(used: Ledger) -> None:
    found = await used.runs.usage(by=("metadata.prompt", "user"), agent="x")
    assert [(one.metadata, one.user_id, one.cost) for one in found] == [
        ({"prompt": "v1"}, "ada", Decimal("0.1")),
        ({"prompt": "v2"}, "ada", Decimal("0.2")),
    ]


@pytest.mark.parametrize(
    ("chosen", "runs_"),
    [
        ({"thread_id": "b"}, 1),
        ({"agent": "y"}, 1),
        ({"model": "small"}, 3),
        ({"since": JUNE + timedelta(microseconds=1)}, 2),
        ({"until": JUNE + timedelta(microseconds=1)}, 3),
        ({"since": JUNE, "until": JUNE}, 0),
    ],
)
async def test_only_the_chosen_runs_count(used: Ledger, chosen: dict[str, Any], runs_: int) -> None:
    [total] = await used.runs.usage(**chosen)
    assert total.runs == runs_


async def test_a_users_ledger_counts_the_users_own_runs(used: Ledger) -> None:
    found = await used.user("ada").runs.usage(by="user")
    assert [(one.user_id, one.runs) for one in found] == [("ada", 3)]


async def test_days_before_1970_and_the_last_one_are_days(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    moments = [
        datetime(1969, 12, 31, 23, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, tzinfo=UTC),
    ]
    for number, moment in enumerate(moments):
        await add_run(ledger, "t", f"r{number}", at=moment)
    assert [one.day for one in await ledger.runs.usage(by="day")] == sorted(moment.date() for moment in moments)


async def test_sums_beyond_63_bits_are_exact(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for number in range(3):
        await add_run(ledger, "t", f"r{number}", usage=Usage(input_tokens=2**63 - 1, output_tokens=2**63 - 1))
    [total] = await ledger.runs.usage()
    assert (total.input_tokens, total.total_tokens) == (3 * (2**63 - 1), 6 * (2**63 - 1))


async def test_metadata_is_read_on_an_encrypted_ledger(database: Database) -> None:
    async with database.open(encryption=KEYS) as ledger:
        await ledger.threads.create("t")
        for number in range(3):
            await add_run(ledger, "t", f"r{number}", metadata={"prompt": f"v{number % 2}"})
        found = await ledger.runs.usage(by="metadata.prompt")
        assert [(one.metadata, one.runs) for one in found] == [({"prompt": "v0"}, 2), ({"prompt": "v1"}, 1)]


@pytest.mark.parametrize("by", ["modle", "metadata.", "metadata", ["model", "model"], ["model", 1], None, {"model"}])
async def test_words_that_name_no_group_are_refused(ledger: Ledger, by: Any) -> None:
    with pytest.raises(InvalidArgument):
        await ledger.runs.usage(by=by)


async def test_a_damaged_cost_is_not_left_out_of_a_sum(sqlite_database: Database) -> None:
    async with sqlite_database.open() as ledger:
        await ledger.threads.create("t")
        await add_run(ledger, "t", "r", usage=Usage(cost=Decimal(1)))
        await query(sqlite_database, "UPDATE runs SET cost = 'much'")
        with pytest.raises(DamagedCell, match=r"runs\.cost"):
            await ledger.runs.usage()


# --- Prices -----------------------------------------------------------------------------------------------------------


async def test_prices_fill_in_the_runs_without_a_cost_by_their_day(ledger: Ledger) -> None:
    """The price of o3 fell on 10 June 2025."""
    await ledger.threads.create("t")
    usage = Usage(input_tokens=1_000, output_tokens=100)
    await add_run(ledger, "t", "before", model="o3", usage=usage, at=datetime(2025, 6, 1, tzinfo=UTC))
    await add_run(ledger, "t", "after", model="o3", usage=usage, at=datetime(2025, 7, 1, tzinfo=UTC))
    await add_run(
        ledger, "t", "own", model="o3", usage=usage + Usage(cost=Decimal(7)), at=datetime(2025, 7, 1, tzinfo=UTC)
    )
    await add_run(ledger, "t", "unknown", model="house", usage=usage)
    await add_run(ledger, "t", "silent", model="o3")
    found = await ledger.runs.usage(by=("model", "day"), prices=True)
    assert [
        (one.model, str(one.day), one.cost, one.estimated_cost, one.estimated_runs) for one in found if one.cost
    ] == [
        ("o3", "2025-06-01", Decimal("0.014"), Decimal("0.014"), 1),
        ("o3", "2025-07-01", Decimal("7.0028"), Decimal("0.0028"), 1),
    ]
    [total] = await ledger.runs.usage(prices=True)
    assert (total.cost, total.estimated_cost) == (Decimal("7.0168"), Decimal("0.0168"))
    assert (total.runs, total.estimated_runs, total.runs_without_cost) == (5, 2, 2)
    assert [run.usage.cost for run in await ledger.runs.list() if run.usage] == [None, None, Decimal(7), None]
    assert (await ledger.runs.usage())[0].cost == 7


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("gpt-4o", Usage(input_tokens=1_000_000, output_tokens=0), "2.5"),
        ("openai:gpt-4o", Usage(input_tokens=1_000_000, output_tokens=0), "2.5"),
        ("openai/gpt-4o", Usage(input_tokens=1_000_000, output_tokens=0), "2.5"),
        ("gpt-4o", Usage(input_tokens=1_000_000, output_tokens=0, details={"cached_tokens": 1_000_000}), "1.25"),
        (
            "gpt-4o",
            Usage(input_tokens=1_000_000, output_tokens=0, details={"prompt_tokens_details.cached_tokens": 1_000_000}),
            "1.25",
        ),
        # Anthropic counts cached tokens beside the others: 3 + 0.3 dollars, and 3.75 to write
        (
            "claude-sonnet-4-20250514",
            Usage(input_tokens=100_000, output_tokens=0, details={"cache_read_input_tokens": 10_000}),
            "0.303",
        ),
        (
            "claude-sonnet-4-20250514",
            Usage(input_tokens=0, output_tokens=0, details={"cache_creation_input_tokens": 100_000}),
            "0.375",
        ),
        ("gpt-4o", Usage(input_tokens=1, output_tokens=0, details={"cached_tokens": 2}), None),
        ("gpt-4o", Usage(input_tokens=1), None),
        ("gpt-4o", Usage(total_tokens=1), None),
        ("no such model", Usage(input_tokens=1, output_tokens=1), None),
    ],
)
async def test_the_price_list_knows(ledger: Ledger, model: str, usage: Usage, cost: str | None) -> None:
    await ledger.threads.create("t")
    await add_run(ledger, "t", "r", model=model, usage=usage)
    [total] = await ledger.runs.usage(prices=True)
    assert total.cost == (None if cost is None else Decimal(cost))


async def test_a_function_names_the_costs(used: Ledger) -> None:
    given = []

    def price(model: str, usage: Usage, moment: datetime) -> Decimal | None:
        given.append((model, usage, moment))
        return Decimal(2)

    found = await used.runs.usage(by="user", prices=price)
    assert [(one.user_id, one.cost, one.runs_without_cost) for one in found] == [
        ("ada", Decimal("2.3"), 0),
        ("bob", Decimal("1e-30"), 0),
        (None, None, 1),
    ]
    assert given == [("large", Usage(input_tokens=5), JUNE + timedelta(1))]
    by_prompt = await used.runs.usage(by="metadata.prompt", prices=price)
    assert [one.estimated_cost for one in by_prompt] == [None, Decimal(2), None]


@pytest.mark.parametrize("prices", [1, "yes", None, lambda *_: 1.5, lambda *_: Decimal("NaN")])
async def test_other_prices_are_refused(used: Ledger, prices: Any) -> None:
    with pytest.raises(InvalidArgument, match="prices"):
        await used.runs.usage(prices=prices)


PROGRAM = """
import asyncio, sys
asked = []
sys.addaudithook(lambda event, _: asked.append(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
from chatledger import Ledger, Usage

async def main():
    async with Ledger.open(":memory:") as ledger:
        await ledger.threads.create("t")
        await ledger.runs.start("t", run_id="r", model="gpt-4o")
        await ledger.runs.finish("r", status="completed", usage=Usage(input_tokens=1_000_000, output_tokens=0))
        print((await ledger.runs.usage(prices=True))[0].cost, asked)

asyncio.run(main())
"""


def test_prices_ask_no_server() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ran.stdout == "2.50 []\n"


def test_without_the_extra_prices_say_what_to_install() -> None:
    hidden = "import sys\nsys.modules['genai_prices'] = None\n" + PROGRAM
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert ran.stderr.endswith("MissingExtra: prices=True needs an extra: pip install 'chatledger[prices]'\n")


async def test_the_words_of_a_sum_have_a_limit(ledger: Ledger) -> None:
    assert await ledger.runs.usage(by=[f"metadata.{number}" for number in range(8)]) == []
    with pytest.raises(InvalidArgument, match="by may have at most 8 words, not 9"):
        await ledger.runs.usage(by=[f"metadata.{number}" for number in range(9)])
