from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import chatledger


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with the conversation "sunny" of the samples in it."""
    path = str(tmp_path / "ledger.db")
    source = tmp_path / "sunny.json"
    source.write_text(json.dumps([{"role": "user", "content": "Sun?"}, {"role": "assistant", "content": "Sun."}]))
    assert chatledger("import", str(source), "--url", path, "--format", "openai-chat").code == 0
    return path


def thread(url: str) -> str:
    found = json.loads(chatledger("threads", "--url", url, "--json").out)["items"]
    thread_id: str = found[0]["thread_id"]
    return thread_id


def test_nothing_is_removed_without_yes(url: str) -> None:
    for words in (["erase", "--whole-tenant"], ["redact", thread(url), "1"], ["retain", "--older-than", "0h"]):
        outcome = chatledger(*words, "--url", url)
        assert (outcome.code, outcome.out) == (2, "")
        assert "--yes" in outcome.err
    assert thread(url)


def test_a_dry_run_says_what_would_go_and_needs_no_yes(url: str) -> None:
    id_ = thread(url)
    before = chatledger("show", id_, "--json", "--url", url).out
    for whom in (["--thread", id_], ["--whole-tenant"]):
        outcome = chatledger("erase", *whom, "--dry-run", "--yes", "--url", url)
        assert (outcome.code, outcome.error) == (0, "chatledger: dry run, nothing is written")
        assert [line.split() for line in outcome.out.splitlines()] == [
            ["TABLE", "ROWS", "TO", "REMOVE"],
            ["messages", "2"],
            ["branches", "1"],
            ["threads", "1"],
        ]
    retained = chatledger("retain", "--older-than", "0h", "--dry-run", "--json", "--url", url).json
    assert (retained["dry_run"], retained["rows"]["messages"]) == (True, 2)
    redacted = chatledger("redact", id_, "2", "--dry-run", "--url", url)
    assert redacted.error == f"chatledger: message 2 of {id_} has 4 characters to redact; dry run, nothing is written"
    assert chatledger("show", id_, "--json", "--url", url).out == before


@pytest.mark.parametrize("whom", [[], ["--thread", "a", "--user", "b"]])
def test_one_is_erased_at_a_time(url: str, whom: list[str]) -> None:
    outcome = chatledger("erase", *whom, "--yes", "--url", url)
    assert outcome.code == 2
    assert "one of --thread, --user and --whole-tenant" in outcome.err


def test_erase_prints_the_rows_removed(url: str) -> None:
    outcome = chatledger("erase", "--thread", thread(url), "--yes", "--url", url)
    assert outcome.code == 0
    assert "messages" in outcome.out
    assert json.loads(chatledger("threads", "--url", url, "--json").out)["items"] == []


def test_redact_leaves_the_message(url: str) -> None:
    outcome = chatledger("redact", thread(url), "1", "--yes", "--url", url, "--json")
    assert json.loads(outcome.out)["content"] == "[redacted]"


def test_retain_takes_an_age(url: str) -> None:
    assert "nothing" in chatledger("retain", "--older-than", "52w", "--yes", "--url", url).err
    assert json.loads(chatledger("retain", "--older-than", "0h", "--yes", "--url", url, "--json").out)["rows"][
        "threads"
    ]
    assert "12h, 90d or 52w" in chatledger("retain", "--older-than", "soon", "--yes", "--url", url).err
    assert "12h, 90d or 52w" in chatledger("retain", "--older-than", "soon", "--url", url).err
