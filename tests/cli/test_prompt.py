"""`prompt` prints what the model is sent, and `show --format` what is stored, in a format."""

from __future__ import annotations

import pytest

from chatledger import ChatMessage, Payload
from tests.cli.commands import chatledger
from tests.cli.test_fix import WEDGED, store
from tests.conftest import Database
from tests.conversations import assistant, turn, user


async def test_a_prompt_says_why_nothing_can_be_sent(sqlite_database: Database) -> None:
    await store(sqlite_database, t=[ChatMessage(role="custom", content="shown")])
    said = chatledger("prompt", "t", url=sqlite_database.url)
    assert (said.code, said.out) == (3, "")
    assert said.error.endswith("message 1: custom messages are for display only: left out")


async def test_a_prompt_is_what_the_provider_takes(database: Database) -> None:
    await store(database, t=[*turn(), *WEDGED])
    said = chatledger("prompt", "t", "--turns", "1", url=database.url)
    assert [wire["role"] for wire in said.json] == ["user", "assistant", "tool", "tool"]
    assert said.err.splitlines() == [
        "chatledger: message 7: call 0 (weather) has no result: answered as interrupted (open-call)",
        "chatledger: message 7: call 1 (time) has no result: answered as interrupted (open-call)",
    ]


async def test_a_prompt_has_the_newest_turns_that_fit(sqlite_database: Database) -> None:
    await store(sqlite_database, t=[*turn(), user("12345678"), assistant("1234")])
    said = chatledger("prompt", "t", "--tokens", "3", "--json", url=sqlite_database.url).json
    assert [wire["content"] for wire in said["payload"]] == ["12345678", "1234"]
    assert (said["last_seq"], said["repairs"]) == (7, [])
    refused = chatledger("prompt", "t", "--tokens", "2", url=sqlite_database.url)
    assert (refused.code, "2 tokens are too few: at least 3 are needed" in refused.error) == (2, True)


async def test_a_prompt_as_json_is_that_of_http(sqlite_database: Database) -> None:
    await store(sqlite_database, t=WEDGED)
    async with sqlite_database.open() as ledger:
        stored = await ledger.messages.prompt("t", "anthropic")
    said = chatledger("prompt", "t", "--format", "anthropic", "--json", url=sqlite_database.url).json
    assert list(said) == ["thread_id", "branch", "last_seq", "mark", "payload", "repairs"]
    assert (said["payload"], said["mark"]) == (stored.payload, stored.history.mark)
    assert [one["code"] for one in said["repairs"]] == [one.code for one in stored.repairs] != []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tokens", "3", "--turns", "1"], "give --tokens or --turns, not both"),
        (["--format", "langchain"], "no provider accepts the format 'langchain'"),
    ],
)
async def test_a_wrong_prompt_is_a_usage_error(sqlite_database: Database, words: list[str], said: str) -> None:
    await store(sqlite_database, t=turn())
    refused = chatledger("prompt", "t", *words, url=sqlite_database.url)
    assert (refused.code, said in refused.error) == (2, True), refused.error


async def test_show_prints_what_is_stored_in_a_format(sqlite_database: Database) -> None:
    payload = [{"role": "user", "content": str(number), "name": "ada"} for number in range(3)]
    async with sqlite_database.open() as ledger:
        await ledger.messages.append("t", Payload(payload, "openai-chat"), create=True)
    said = chatledger("show", "t", "--format", "openai-chat", "--newest", "2", url=sqlite_database.url)
    assert (said.json, said.err.splitlines()[0][:30]) == (payload[1:], "chatledger: earlier messages: ")
    other = chatledger("show", "t", "--format", "anthropic", "--json", url=sqlite_database.url).json
    assert list(other) == ["thread", "last_seq", "previous_cursor", "next_cursor", "payload", "losses"]
    assert {one["code"] for one in other["losses"]} >= {"name"}
    for words in (["--format", "bogus"], ["--format", "anthropic", "--html", "x.html"]):
        assert chatledger("show", "t", *words, url=sqlite_database.url).code == 2
