from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, Ledger
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.conversations import turn


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


def messages(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chatledger("show", "--latest", "--url", url, "--json").json["messages"]
    return found


def message_ids(url: str) -> list[str]:
    return [one["message_id"] for one in messages(url)]


def test_nothing_is_removed_without_yes(url: str) -> None:
    for words in (
        ["erase", "--whole-tenant"],
        ["erase-message", thread(url), "m"],
        ["delete-inactive", "--older-than", "0h"],
    ):
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
    retained = chatledger("delete-inactive", "--older-than", "0h", "--dry-run", "--json", "--url", url).json
    assert (retained["dry_run"], retained["rows"]["messages"]) == (True, 2)
    message = message_ids(url)[1]
    erased = chatledger("erase-message", id_, message, "--dry-run", "--url", url)
    said = f"message {message} of {id_} has 4 characters to erase; dry run, nothing is written"
    assert erased.error == f"chatledger: {said}"
    assert chatledger("show", id_, "--json", "--url", url).out == before


async def test_a_dry_run_counts_what_an_unfinished_message_has(database: Database) -> None:
    async with database.open() as ledger:
        draft = ChatMessage(role="assistant", content="It is", state="partial", message_id="m")
        await ledger.messages.append("t", [ChatMessage.user("?"), draft], create=True)
    erased = chatledger("erase-message", "t", "m", "--dry-run", url=database.url)
    assert erased.error == "chatledger: message m of t has 5 characters to erase; dry run, nothing is written"


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


def test_the_erasure_of_a_message_leaves_the_message(url: str) -> None:
    outcome = chatledger("erase-message", thread(url), message_ids(url)[0], "--yes", "--url", url, "--json")
    assert json.loads(outcome.out)["content"] == "[redacted]"
    assert [one["content"] for one in messages(url)] == ["[redacted]", "Sun."]


@pytest.mark.parametrize("words", [["no message"], []])
def test_a_message_that_is_not_named_leaves_all_as_it_is(url: str, words: list[str]) -> None:
    assert chatledger("erase-message", thread(url), *words, "--yes", "--url", url).code != 0
    assert [one["content"] for one in messages(url)] == ["Sun?", "Sun."]


async def test_the_content_of_a_removed_message_is_erased(url: str) -> None:
    message = message_ids(url)[1]
    async with Ledger.open(url) as ledger:
        await ledger.messages.pop(thread(url))
    said = chatledger("erase-message", thread(url), message, "--dry-run", "--url", url).error
    assert "has 4 characters to erase" in said
    assert chatledger("erase-message", thread(url), message, "--yes", "--url", url).code == 0
    async with Ledger.open(url) as ledger:
        [popped] = await ledger.messages.revisions(thread(url), message)
    assert popped.message is not None
    assert popped.message.text == "[redacted]"


def test_retain_takes_an_age(url: str) -> None:
    assert "nothing" in chatledger("delete-inactive", "--older-than", "52w", "--yes", "--url", url).err
    assert json.loads(chatledger("delete-inactive", "--older-than", "0h", "--yes", "--url", url, "--json").out)["rows"][
        "threads"
    ]
    assert "12h, 90d or 52w" in chatledger("delete-inactive", "--older-than", "soon", "--yes", "--url", url).err
    assert "12h, 90d or 52w" in chatledger("delete-inactive", "--older-than", "soon", "--url", url).err


def test_a_typing_error_leaves_no_tombstone(url: str) -> None:
    for whom in (["--user", "nobody"], ["--whole-tenant", "--tenant", "nobody"]):
        for how in ("--dry-run", "--yes"):
            refused = chatledger("erase", *whom, how, "--url", url)
            assert (refused.code, refused.out) == (3, "")
            assert "'nobody'" in refused.error
            assert "--even-if-unknown" in refused.error
        assert tombstones(url, *whom[1:]) == []
        forced = chatledger("erase", *whom, "--even-if-unknown", "--yes", "--json", "--url", url).json
        assert tombstones(url, *whom[1:]) == [forced["erasure_id"]]
        assert chatledger("erase", *whom, "--yes", "--url", url).code == 0  # it is known now
        assert chatledger("erase", "--whole-tenant", "--yes", "--url", url).code == 0


def tombstones(url: str, *words: str) -> list[str]:
    tenant = words if words[:1] == ("--tenant",) else ()
    return [one["erasure_id"] for one in chatledger("erasures", *tenant, "--json", "--url", url).json["items"]]


async def test_a_user_without_threads_is_known_by_a_score_or_a_value(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        await ledger.user("ada").threads.create("t")
        await ledger.runs.start("t", run_id="r")
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4, user_id="eve"))
        await ledger.kv.put(("user", "bob"), "colour", "red")
    for user in ("eve", "bob"):
        assert chatledger("erase", "--user", user, "--yes", url=database.url).code == 0
    assert chatledger("erase", "--user", "dan", "--yes", url=database.url).code == 3


def test_even_if_unknown_is_for_users_and_tenants(url: str) -> None:
    refused = chatledger("erase", "--thread", "x", "--even-if-unknown", "--yes", "--url", url)
    assert (refused.code, "--even-if-unknown" in refused.error) == (2, True)


async def test_erasures_lists_the_tombstones(database: Database) -> None:
    assert chatledger("erasures", url=database.url).error == "chatledger: no tombstones"
    async with Ledger.open(database.url) as ledger:
        for number in range(2):
            await ledger.user("yvonne").threads.create(f"t{number}")
        await ledger.erasures.erase(("user", "yvonne"))
    table = chatledger("erasures", url=database.url)
    assert [line.split()[1:4] for line in table.out.splitlines()] == [
        ["KIND", "ROWS", "SCORES"],
        ["user", "4", "0"],
        ["thread", "2", "0"],
        ["thread", "2", "0"],
    ]
    assert "yvonne" not in table.out
    first = chatledger("erasures", "--limit", 2, "--json", url=database.url).json
    rest = chatledger("erasures", "--json", "--cursor", first["next_cursor"], url=database.url).json
    assert [one["kind"] for one in first["items"] + rest["items"]] == ["user", "thread", "thread"]


async def test_a_deletion_is_counted_before_it_is_made(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        await ledger.threads.create("t")
        await ledger.runs.start("t", run_id="r")
        await ledger.messages.append("t", turn(), run_id="r")
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4))
        await ledger.threads.create("other")
    said = chatledger("delete", "t", "--dry-run", "--json", url=database.url).json
    told = chatledger("delete", "t", "--dry-run", "--yes", url=database.url)
    assert (told.code, told.error) == (0, "chatledger: dry run, nothing is written")
    assert told.out.splitlines()[0].split() == ["TABLE", "ROWS", "TO", "REMOVE"]
    done = chatledger("delete", "t", "--yes", "--json", url=database.url).json
    assert (said.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert said == done
    for how in ("--dry-run", "--yes"):
        assert chatledger("delete", "t", how, url=database.url).code == 3


def test_retention_counts_from_the_import(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    source = tmp_path / "old.json"
    source.write_text('{"id": "a", "at": "2020-01-01T00:00:00Z", "messages": [{"role": "user", "content": "Lima?"}]}')
    chatledger("import", source, "--id-field", "id", "--time-field", "at", "--url", url)
    [stored] = chatledger("threads", "--json", "--url", url).json["items"]
    assert stored["created_at"].startswith("2020-01-01")
    for age, kept in (("52w", 1), ("0h", 0)):
        chatledger("delete-inactive", "--older-than", age, "--yes", "--url", url)
        assert len(chatledger("threads", "--json", "--url", url).json["items"]) == kept
