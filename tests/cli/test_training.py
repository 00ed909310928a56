"""Export for training: conversations a line, chosen by feedback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import Feedback, Ledger
from chatledger.transfer.scoring import mean_scores, scored_at_least
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.transfer.files import array, lines, talk


async def scored(ledger: Ledger, thread: str, *scores: float, key: str = "stars", author: str | None = None) -> None:
    """A thread of one run, with these scores one after the other."""
    await ledger.threads.create(thread, exist_ok=True)
    if await ledger.runs.find(f"run of {thread}") is None:
        await ledger.runs.start(thread, run_id=f"run of {thread}")
    for score in scores:
        await ledger.feedback.record(Feedback(run_id=f"run of {thread}", key=key, score=score, author=author))


async def test_latest_score_of_each_author_counts_and_their_mean_decides(ledger: Ledger) -> None:
    await scored(ledger, "t", 1, 5)
    await scored(ledger, "t", 4, 2, author="ada")
    await scored(ledger, "t", 1, key="other")
    await ledger.runs.start("t", run_id="second")
    await ledger.feedback.record(Feedback(run_id="second", key="stars", score=2))
    assert await mean_scores(ledger, "t", ["stars", "none"]) == {"stars": 3.0}


async def test_threads_are_chosen_by_every_minimum(ledger: Ledger) -> None:
    for thread, stars, safe in (("a", 4, 1), ("b", 5, 0), ("c", 3, 1)):
        await scored(ledger, thread, stars)
        await scored(ledger, thread, safe, key="safe")
    await scored(ledger, "unscored")
    threads = ["c", "unscored", "b", "a"]
    assert await scored_at_least(ledger, threads, {"stars": 4}) == ["b", "a"]
    assert await scored_at_least(ledger, threads, {"stars": 4, "safe": 1}) == ["a"]
    assert await scored_at_least(ledger, threads, {}) == threads


@pytest.fixture
def imported(database: Database, tmp_path: Path) -> str:
    file = tmp_path / "in.json"
    file.write_bytes(
        array(*({"id": name, "n": 1, "messages": talk(name, "ok")} for name in "abc"), {"id": "d", "messages": []})
    )
    chatledger("import", file, "--thread-field", "id", "--format", "openai-chat", url=database.url)
    return database.url


def export(url: str, *words: str) -> Any:
    done = chatledger("export", *words, url=url)
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def test_jsonl_is_a_conversation_a_line_and_nothing_else(imported: str) -> None:
    assert export(imported, "--jsonl", "--format", "openai-chat") == [{"messages": talk(name, "ok")} for name in "abc"]
    assert export(imported, "--jsonl") == export(imported, "--jsonl", "--all")
    assert export(imported, "b", "--jsonl") == [{"messages": talk("b", "ok")}]


async def test_min_score_filters(database: Database, imported: str) -> None:
    async with database.open() as ledger:
        for name, stars in (("a", 4.0), ("b", 3.5)):
            await scored(ledger, name, stars)
    assert export(imported, "--jsonl", "--min-score", "stars=4") == [{"messages": talk("a", "ok")}]
    assert [
        record["id"] for record in export(imported, "--all", "--container", "lines", "--min-score", "stars=3.5")
    ] == ["a", "b"]


@pytest.mark.parametrize("words", [("--min-score", "stars"), ("--min-score", "=4"), ("--min-score", "stars=nan"), ()])
def test_wrong_words_are_a_usage_error(imported: str, words: tuple[str, ...]) -> None:
    assert chatledger("export", *words, *(["--all"] if words else []), url=imported).code == 2
    assert chatledger("export", "a", "--min-score", "stars=1", url=imported).code == 2


def test_model_view_is_what_the_provider_accepts(database: Database, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    wedged = [*talk("a"), {"role": "assistant", "content": None, "tool_calls": [call]}, *talk("b")]
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines({"id": "t", "messages": wedged}, {"id": "u", "messages": talk("x", "y")}))
    chatledger("import", file, "--thread-field", "id", url=database.url)
    done = chatledger("export", "--jsonl", "--view", "model", url=database.url)
    repaired, whole = [json.loads(line)["messages"] for line in done.out.splitlines()]
    assert [message["role"] for message in repaired] == ["user", "assistant", "tool", "user"]
    assert (repaired[2]["tool_call_id"], whole) == ("c", talk("x", "y"))
    assert "repaired, so that the provider accepts it" in done.err
    assert export(database.url, "--jsonl")[0]["messages"] == wedged


def test_model_view_needs_a_provider_and_jsonl(imported: str) -> None:
    assert chatledger("export", "--jsonl", "--view", "model", "--format", "qwen-agent", url=imported).code == 2
    assert chatledger("export", "--all", "--view", "model", url=imported).code == 2
