from __future__ import annotations

import pytest

from chatledger import ChatMessage, Ledger
from tests.cli.commands import chatledger
from tests.conftest import Database


@pytest.fixture
async def with_run(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [ChatMessage(role="user", content="hi", message_id="m")], run_id="r")
    return database


def test_scores_are_recorded_and_summed_up(with_run: Database) -> None:
    for score, user in (("3", "ada"), ("4", "ada"), ("-1", "bob")):
        assert chatledger("feedback", "record", "r", "stars", score, "--user", user, url=with_run.url).code == 0
    events = chatledger("feedback", "summary", "--events", "--user", "ada", "--json", url=with_run.url)
    assert events.json["items"] == [{"key": "stars", "count": 2, "mean": 3.5, "min": 3.0, "max": 4.0}]
    outcome = chatledger("feedback", "summary", "--key", "stars", "--json", url=with_run.url)
    assert outcome.json["items"] == [{"key": "stars", "count": 2, "mean": 1.5, "min": -1.0, "max": 4.0}]
    assert chatledger("feedback", "summary", url=with_run.url).out.split() == [
        *("KEY", "COUNT", "MEAN", "MIN", "MAX"),
        *("stars", "2", "1.5", "-1", "4"),
    ]


def test_a_score_is_retracted(with_run: Database) -> None:
    stored = chatledger("feedback", "record", "r", "stars", "5", "--json", url=with_run.url).json
    outcome = chatledger("feedback", "remove", stored["feedback_id"], url=with_run.url)
    assert (outcome.code, outcome.out) == (0, f"removed {stored['feedback_id']}\n")
    assert chatledger("feedback", "summary", "--json", url=with_run.url).json["items"] == []
    again = chatledger("feedback", "remove", stored["feedback_id"], "--json", url=with_run.url).json
    assert again["retracted_at"]


def test_everything_said_is_recorded(with_run: Database) -> None:
    said = ["--comment", "good", "--author", "ada", "--source", "ui", "--message", "m", "--idempotency-key", "k"]
    said += ["--user", "u1"]
    first = chatledger("feedback", "record", "r", "stars", "5", *said, "--json", url=with_run.url).json
    assert first.pop("created_at")
    feedback_id = first.pop("feedback_id")
    assert first == {
        "run_id": "r",
        "key": "stars",
        "score": 5.0,
        "kwargs": {"comment": "good"},
        "author": "ada",
        "source": "ui",
        "message_id": "m",
        "user_id": "u1",
        "call_index": None,
        "retracted_at": None,
    }
    again = chatledger("feedback", "record", "r", "stars", "5", *said, "--json", url=with_run.url).json
    assert again["feedback_id"] == feedback_id


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("record r stars nan", 2),
        ("record r stars inf", 2),
        ("record nobody stars 1", 3),
        ("record r stars 1 --message none", 3),
        ("record r stars 1 --message m --call 0", 2),
        ("record r stars 1 --call -1", 2),
        ("remove nothing", 3),
        ("summary --since 2025-01-01T00:00Z", 0),
        ("list", 0),
        ("list --cursor x", 2),
    ],
)
def test_exit_codes(with_run: Database, words: str, code: int) -> None:
    outcome = chatledger("feedback", *words.split(), url=with_run.url)
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (code, "", 1)


async def test_a_thread_in_place_of_a_run_is_answered_with_the_command_that_lists_runs(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("trip")
    outcome = chatledger("feedback", "record", "trip", "stars", "4", url=database.url)
    assert outcome.code == 3
    assert outcome.error.startswith(
        "chatledger: there is no run 'trip'; a score is about a run; `chatledger runs list "
    )
