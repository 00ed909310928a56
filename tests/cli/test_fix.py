from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Payload
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.repositories.branches import fork_at
from tests.cli.commands import chatledger
from tests.cli.terminal import at_terminal
from tests.conftest import Database
from tests.conversations import assistant, call, turn, user
from tests.leases import pass_time
from tests.windows import read as read_window

WEDGED = [user("?"), assistant(calls=[call("a"), call("b", "time")])]


async def store(database: Database, **threads: list[ChatMessage]) -> None:
    async with database.open() as ledger:
        for name, messages in threads.items():
            await ledger.threads.create(name)
            await ledger.messages.append(name, messages, rules="lenient")


async def read(database: Database, thread: str, **how: Any) -> list[ChatMessage]:
    async with database.open() as ledger:
        return with_draft(await read_window(ledger, thread, **how))


async def test_open_calls_are_answered_for_good_and_once(database: Database) -> None:
    await store(database, whole=turn(), wedged=WEDGED)
    done = chatledger("check", "--fix", "--yes", "--json", url=database.url)
    assert (done.code, done.json["checked"], done.json["dry_run"]) == (0, 2, False)
    assert done.json["items"] == [
        {
            "thread_id": "wedged",
            "branch": 0,
            "seq": seq,
            "what": "result",
            "detail": f"stored 'interrupted' as the result of call {id_} ({name})",
        }
        for seq, id_, name in ((3, "a", "weather"), (4, "b", "time"))
    ]
    results = (await read(database, "wedged"))[2:]
    assert [(one.tool_call_id, one.state, one.text) for one in results] == [
        ("a", "synthetic", "interrupted"),
        ("b", "synthetic", "interrupted"),
    ]
    assert chatledger("check", "--fix", "--yes", "--json", url=database.url).json["items"] == []
    assert len(await read(database, "wedged")) == 4
    assert chatledger("check", "wedged", url=database.url).code == 0


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(database: Database) -> None:
    await store(database, whole=turn(), wedged=WEDGED)
    said = chatledger("check", "--fix", "--dry-run", url=database.url)
    assert (said.code, said.error) == (1, "chatledger: 2 threads checked, 2 repairs to do")
    assert [line.split() for line in said.out.splitlines()] == [
        ["THREAD", "BRANCH", "SEQ", "WHAT", "DETAIL"],
        ["wedged", "0", "2", "open", "call", "call", "0", "(weather)", "has", "no", "result"],
        ["wedged", "0", "2", "open", "call", "call", "1", "(time)", "has", "no", "result"],
    ]
    assert len(await read(database, "wedged")) == 2
    assert chatledger("check", "--fix", "whole", "--dry-run", url=database.url).code == 0


async def test_a_live_partial_message_is_left_alone(sqlite_database: Database) -> None:
    await store(sqlite_database, t=[user("?"), assistant("I am", state="partial")])
    for options in (["--yes"], ["--dry-run"]):
        said = chatledger("check", "--fix", "t", "--json", *options, url=sqlite_database.url)
        left = "chatledger: branch 0 of thread t skipped: its last message is still being written"
        assert (said.code, said.error, said.json["items"]) == (0, left, [])
    assert (await read(sqlite_database, "t"))[1].state == "partial"


async def test_abandoned_partial_messages_are_cut_short(sqlite_database: Database) -> None:
    await store(sqlite_database, t=[user("?"), assistant("I am", state="partial")])
    async with sqlite_database.open() as ledger:
        await pass_time(ledger, 3_600)
    said = chatledger("check", "--fix", "t", "--yes", url=sqlite_database.url)
    assert (said.code, said.error) == (0, "chatledger: 1 thread checked, 1 repair done")
    assert (await read(sqlite_database, "t"))[1].state == "interrupted"


async def test_inactive_branches_are_repaired_as_well(sqlite_database: Database) -> None:
    await store(sqlite_database, t=WEDGED)
    async with Ledger.open(sqlite_database.url) as ledger:
        await fork_at(scope_of(ledger), "t", 1)
    done = chatledger("check", "--fix", "--yes", "--json", url=sqlite_database.url).json["items"]
    assert {row["branch"] for row in done} == {0}
    assert len(await read(sqlite_database, "t", branch=0)) == 4
    assert len(await read(sqlite_database, "t")) == 1


async def test_check_names_what_a_provider_would_refuse(sqlite_database: Database) -> None:
    await store(sqlite_database, whole=turn(), wedged=[*WEDGED, ChatMessage(role="custom", content="shown")])
    said = chatledger("check", "--provider", "openai-chat", "--json", url=sqlite_database.url)
    assert (said.code, said.json["checked"]) == (1, 2)
    assert [(one["thread_id"], one["seq"], one["reason"]) for one in said.json["items"]] == [
        ("wedged", 2, "open-call"),
        ("wedged", 2, "open-call"),
    ]
    table = chatledger("check", "wedged", "--provider", "openai-chat", url=sqlite_database.url)
    assert table.out.splitlines()[0].split() == ["THREAD", "SEQ", "REASON", "DETAIL"]
    well = chatledger("check", "whole", "--provider", "openai-chat", url=sqlite_database.url)
    assert (well.code, well.out, well.error) == (0, "", "chatledger: 1 thread checked, all well")
    assert chatledger("check", "--fix", "--yes", url=sqlite_database.url).code == 0
    assert chatledger("check", "--provider", "openai-chat", url=sqlite_database.url).code == 0


async def test_check_names_the_keys_that_a_provider_would_refuse(sqlite_database: Database) -> None:
    reply = {"role": "assistant", "content": "Sun.", "id": "msg_1", "usage": {"output_tokens": 2}}
    async with sqlite_database.open() as ledger:
        await ledger.messages.append("t", Payload([{"role": "user", "content": "?"}, reply], "anthropic"), create=True)
    said = chatledger("check", "--provider", "anthropic", "--json", url=sqlite_database.url)
    [finding] = said.json["items"]
    assert (said.code, finding["seq"], finding["reason"]) == (1, 2, "keys")
    assert finding["detail"] == "keys that a request may not have: left out: id, usage"


async def test_check_names_a_thread_with_nothing_to_send(sqlite_database: Database) -> None:
    await store(sqlite_database, told=[ChatMessage(role="system", content="Be brief.")], new=[])
    said = chatledger("check", "--provider", "anthropic", "--json", url=sqlite_database.url)
    [finding] = said.json["items"]
    assert (said.code, said.json["checked"]) == (1, 2)
    assert (finding["thread_id"], finding["seq"], finding["reason"]) == ("told", None, "nothing-to-send")
    assert "message 1: instructions are not sent" in finding["detail"]
    assert chatledger("check", "--provider", "openai-chat", url=sqlite_database.url).code == 0


async def test_check_passes_an_id_that_comes_again_where_the_provider_takes_it(sqlite_database: Database) -> None:
    await store(sqlite_database, t=[*turn(), *turn()])
    assert chatledger("check", "--provider", "openai-chat", url=sqlite_database.url).code == 0
    said = chatledger("check", "--provider", "anthropic", "--json", url=sqlite_database.url)
    assert [(one["seq"], one["reason"]) for one in said.json["items"]] == [(7, "reused-id"), (7, "reused-id")]


async def test_check_knows_the_providers(sqlite_database: Database) -> None:
    said = chatledger("check", "--provider", "kosong", url=sqlite_database.url)
    assert (said.code, said.out) == (2, "")
    assert "no provider accepts the format 'kosong'" in said.error
    assert "openai-chat" in said.error


async def test_at_a_terminal_a_fix_asks_before_it_writes(database: Database) -> None:
    await store(database, whole=turn(), wedged=WEDGED)
    words = ("check", "--fix", "--url", database.url)
    listed = "2 threads checked, 2 repairs to do\nchatledger: make 2 repairs? [y/N] "
    for typed, code in (("n\n", 1), ("\n", 1), ("\x04", 1), ("^C", 130)):
        said = await asyncio.to_thread(at_terminal, *words, prompt="[y/N]", typed=typed)
        assert (said[0], listed in said[1], len(await read(database, "wedged"))) == (code, True, 2), (typed, said)
    said = await asyncio.to_thread(at_terminal, *words, prompt="[y/N]", typed="y\n")
    assert (said[0], "2 threads checked, 2 repairs done" in said[1]) == (0, True), said
    assert len(await read(database, "wedged")) == 4
    again = await asyncio.to_thread(at_terminal, *words, prompt="[y/N]", typed="")
    assert (again[0], "[y/N]" in again[1], "nothing to do" in again[1]) == (0, False, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--yes"], "--yes goes with --fix"),
        (["--dry-run"], "--dry-run goes with --fix"),
        (["--fix", "--latest", "--yes"], "give --fix or --latest, not both"),
        (["--fix", "--provider", "anthropic", "--yes"], "give --fix or --provider, not both"),
    ],
)
async def test_options_that_do_not_go_together_write_nothing(
    sqlite_database: Database, words: list[str], said: str
) -> None:
    await store(sqlite_database, wedged=WEDGED)
    refused = chatledger("check", *words, url=sqlite_database.url)
    assert (refused.code, refused.error) == (2, f"chatledger: {said}")
    assert len(await read(sqlite_database, "wedged")) == 2


async def test_in_a_pipe_a_fix_writes_only_with_yes(sqlite_database: Database) -> None:
    await store(sqlite_database, wedged=WEDGED)
    for words in (["check", "--fix"], ["check", "wedged", "--fix"], ["check", "--fix", "--json"]):
        refused = chatledger(*words, url=sqlite_database.url, given=b"y\n")
        assert (refused.code, refused.out, len(await read(sqlite_database, "wedged"))) == (2, "", 2)
        assert refused.error == (
            "chatledger: --fix writes: add --yes to confirm it, or --dry-run to see what it would write"
        )
    assert (await asyncio.to_thread(at_terminal, "check", "--fix", "--json", prompt="--yes", typed=""))[0] == 2
