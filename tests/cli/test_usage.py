from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from chatledger import ChatMessage, Feedback, Ledger, Usage
from tests.cli.commands import chatledger
from tests.conftest import Database


@pytest.fixture
async def with_runs(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        await ledger.user("ada").threads.create("t")
        for number, (model, cost) in enumerate((("large", "0.5"), ("large", "0.00000025"), ("gpt-4o", None))):
            run_id = f"r{number}"
            await ledger.runs.start("t", run_id=run_id, model=model, metadata={"prompt": f"v{number % 2}"})
            await ledger.messages.append("t", [ChatMessage(role="assistant", content="hi")], run_id=run_id)
            usage = Usage(input_tokens=1_000, output_tokens=0, cost=None if cost is None else Decimal(cost))
            await ledger.runs.finish(run_id, status="completed", usage=usage)
            await ledger.feedback.record(Feedback(run_id=run_id, key="ok", score=number % 2))
    return database


def test_usage_is_a_table(with_runs: Database) -> None:
    outcome = chatledger("runs", "usage", "--by", "user,model", url=with_runs.url)
    assert outcome.out.splitlines() == [
        "USER  MODEL   RUNS  FAILED  INPUT  OUTPUT  TOTAL  COST",
        "ada   gpt-4o  1     0       1,000  0       1,000",
        "ada   large   2     0       2,000  0       2,000  0.50000025",
    ]
    assert (outcome.code, outcome.error) == (0, "chatledger: 1 run without a cost")


def test_usage_as_json_has_the_chosen_groups_only(with_runs: Database) -> None:
    words = ("--by", "day,metadata.prompt", "--model", "large", "--json")
    today = datetime.now(UTC).date().isoformat()
    items = chatledger("runs", "usage", *words, url=with_runs.url).json["items"]
    counts = {"runs": 1, "failed": 0, "input_tokens": 1000, "output_tokens": 0, "total_tokens": 1000}
    rest = {"runs_without_cost": 0, "estimated_cost": None, "estimated_runs": 0}
    assert [item | {"day": today} for item in items] == [
        {"day": today, "metadata": {"prompt": "v0"}, **counts, "cost": "0.5", **rest},
        {"day": today, "metadata": {"prompt": "v1"}, **counts, "cost": "0.00000025", **rest},
    ]


def test_prices_say_how_much_is_estimated(with_runs: Database) -> None:
    outcome = chatledger("runs", "usage", "--prices", url=with_runs.url)
    assert outcome.out.splitlines()[1].split() == ["gpt-4o", "1", "0", "1,000", "0", "1,000", "0.0025"]
    assert outcome.error == "chatledger: 0.0025 of the cost is estimated"


def test_usage_of_a_time_without_runs(with_runs: Database) -> None:
    outcome = chatledger("runs", "usage", "--until", "2020-01-01", url=with_runs.url)
    assert (outcome.code, outcome.out, outcome.error) == (0, "", "chatledger: no runs")


@pytest.mark.parametrize(
    "words", ["runs usage --by week", "runs usage --by day,day", "stats --by week", "feedback compare k --by x"]
)
def test_a_word_that_is_no_group_is_a_usage_error(with_runs: Database, words: str) -> None:
    outcome = chatledger(*words.split(), url=with_runs.url)
    assert (outcome.code, outcome.out) == (2, "")


def test_stats(with_runs: Database) -> None:
    assert chatledger("stats", url=with_runs.url).out.splitlines() == [
        "MESSAGES  THREADS  USERS  RUNS  INPUT  OUTPUT  TOTAL  COST        SCORES",
        "3         1        1      3     3,000  0       3,000  0.50000025  3",
    ]
    items = chatledger("stats", "--by", "model", "--json", url=with_runs.url).json["items"]
    assert [(item["model"], item["messages"], item["scores"], "day" in item) for item in items] == [
        ("gpt-4o", 1, 1, False),
        ("large", 2, 2, False),
    ]


def test_scores_are_compared(with_runs: Database) -> None:
    assert chatledger("feedback", "compare", "ok", url=with_runs.url).out.splitlines() == [
        "MODEL   COUNT  MEAN  SHARE  LOW      HIGH    RUNS  MEAN COST  MEAN TOKENS",
        "gpt-4o  1      0     0      0        0.7935  1                1,000",
        "large   2      0.5   0.5    0.09453  0.9055  2     0.25       1,000",
    ]
    outcome = chatledger("feedback", "compare", "ok", "--by", "metadata.prompt", "--json", url=with_runs.url)
    assert [(item["value"], item["count"], item["method"]) for item in outcome.json["items"]] == [
        ("v0", 2, "wilson"),
        ("v1", 1, "wilson"),
    ]
    assert chatledger("feedback", "compare", "none", url=with_runs.url).error == "chatledger: no feedback"
