from __future__ import annotations

from chatledger import ChatMessage, Ledger
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.cli.commands import chatledger
from tests.conftest import Database


async def leave_drafts(url: str) -> None:
    """One in a thread with a live lease, and one that was imported, which is nobody's."""
    partial = ChatMessage(role="assistant", content="Hm", state="partial")
    async with Ledger.open(url) as ledger:
        await ledger.threads.create("live")
        await ledger.messages.append("live", [partial], run_id="r\x1b[31m")
        thread = (await ledger.threads.get("live")).model_copy(update={"thread_id": "left"})
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, [partial])])


async def test_partials_are_listed(database: Database) -> None:
    await leave_drafts(database.url)
    listed = chatledger("drafts", url=database.url)
    assert (listed.code, listed.error) == (0, "chatledger: 2 drafts")
    assert {line.split()[0] for line in listed.out.splitlines()} == {"THREAD", "live", "left"}
    assert "\x1b" not in listed.out
    as_json = chatledger("drafts", "--json", url=database.url).json["items"]
    places = sorted((one["thread_id"], one["branch"], one["seq"]) for one in as_json)
    assert places == [("left", 0, 1), ("live", 0, 1)]
    assert chatledger("drafts", "--older-than", 3600, "--json", url=database.url).json == {
        "items": [],
        "next_cursor": None,
    }


async def test_only_abandoned_messages_are_interrupted(database: Database) -> None:
    await leave_drafts(database.url)
    outcome = chatledger("drafts", "--interrupt", url=database.url)
    interrupted, held = outcome.err.splitlines()
    assert (outcome.code, interrupted) == (0, "chatledger: 1 draft interrupted")
    assert held.startswith("chatledger: 1 draft left alone, because a writer may still be active: for 10 seconds")
    assert held.endswith("--older-than 0 interrupts anyway")
    again = chatledger("drafts", "--interrupt", "--json", url=database.url)
    assert again.json == {"items": [], "next_cursor": None}
    forced = chatledger("drafts", "--interrupt", "--older-than", 0, "--json", url=database.url).json["items"]
    assert [(one["thread_id"], one["interrupted"]) for one in forced] == [("live", True)]
    assert chatledger("drafts", url=database.url).error == "chatledger: 0 drafts"
