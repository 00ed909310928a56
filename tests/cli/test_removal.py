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
    found = json.loads(chatledger("threads", "--url", url, "--json").out)["threads"]
    thread_id: str = found[0]["thread_id"]
    return thread_id


def test_nothing_goes_without_yes(url: str) -> None:
    for words in (["erase", "--whole-tenant"], ["redact", thread(url), "1"], ["retain", "--older-than", "0h"]):
        outcome = chatledger(*words, "--url", url)
        assert (outcome.code, outcome.out) == (2, "")
        assert "--yes" in outcome.err
    assert thread(url)


@pytest.mark.parametrize("whom", [[], ["--thread", "a", "--user", "b"]])
def test_one_is_erased_at_a_time(url: str, whom: list[str]) -> None:
    outcome = chatledger("erase", *whom, "--yes", "--url", url)
    assert outcome.code == 2
    assert "one of --thread, --user and --whole-tenant" in outcome.err


def test_erase_says_what_went(url: str) -> None:
    outcome = chatledger("erase", "--thread", thread(url), "--yes", "--url", url)
    assert outcome.code == 0
    assert "messages" in outcome.out
    assert json.loads(chatledger("threads", "--url", url, "--json").out)["threads"] == []


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
