"""Looking after answers: what one waits for, a decision, and a stop."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import datetime
from itertools import chain
from pathlib import Path

import pytest

from chatledger import KeyRing, Ledger
from tests.answers.agents import Model, Tools, agent_of
from tests.answers.test_answers import soon, texts
from tests.answers.test_pauses import asking
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.storage.raw import query


@pytest.fixture
async def run_id(database: Database) -> str:
    """An answer that waits for two calls, and no process serves it."""
    agent, _ = asking(calls=2)
    async with Ledger.open(database.url) as ledger, ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await soon(answer.wait())
        return answer.run.run_id


async def test_an_answer_is_resumed(database: Database, run_id: str) -> None:
    shown = chatledger("runs", "show", run_id, url=database.url)
    assert [line.split() for line in shown.out.splitlines() if line.startswith("waits")] == [
        ["waits", "for", "call-0:", "costs", "call-0"],
        ["waits", "for", "call-1:", "costs", "call-1"],
    ]
    first = chatledger("runs", "resume", run_id, "--approve", "call-0", url=database.url)
    assert (first.code, first.out) == (0, f"{run_id} still waits for call-1\n")
    refused = ("--refuse", "call-1", "--reason", "too dear")
    second = chatledger("runs", "resume", run_id, *refused, url=database.url)
    assert (second.code, second.out) == (0, f"{run_id} goes on in a process that serves weather\n")
    opposite = chatledger("runs", "resume", run_id, "--refuse", "call-0", url=database.url)
    assert (opposite.code, "'call-0' is approved already" in opposite.err) == (3, True)
    tools = Tools()
    async with Ledger.open(database.url) as ledger, ledger.answers.serve({"weather": agent_of(Model(), tools)}):
        answer = await ledger.answers.get(run_id)
        assert (await soon(answer.wait())).status == "completed"
        said = [text for role, text, _ in await texts(ledger) if role == "tool"]
    assert said == ["The call was refused: too dear", "sunny in Tokyo"]
    assert [call.approved for call in tools.calls] == [True]


async def test_an_answer_is_stopped(database: Database, run_id: str) -> None:
    stopped = chatledger("runs", "stop", run_id, url=database.url)
    assert (stopped.code, stopped.out) == (0, f"{run_id} is cancelled\n")
    again = chatledger("runs", "stop", run_id, "--json", url=database.url)
    assert (again.json["status"], again.json["error"]) == ("cancelled", "stopped")
    missing = chatledger("runs", "stop", "r", url=database.url)
    assert missing.code == 3
    assert "there is no run 'r'" in missing.err


def test_a_reason_is_about_a_refusal(database: Database) -> None:
    done = chatledger("runs", "resume", "r", "--approve", "c", "--reason", "?", url=database.url)
    assert (done.code, "add --refuse CALL" in done.err) == (2, True)


async def test_live_answers_are_listed_with_who_works_on_them(database: Database, run_id: str) -> None:
    async with Ledger.open(database.url) as ledger:
        other = await ledger.user("ada").answers.start("a", "Lima?", agent="weather", create=True)
        done = await ledger.answers.start("b", "Rome?", agent="weather", create=True)
        await ledger.answers.stop(done.run.run_id)
        async with ledger.answers.serve({"guide": agent_of(Model(gate=asyncio.Event(), calls=0))}):
            held = await ledger.answers.start("c", "Oslo?", agent="guide", create=True)
            listed = await asyncio.to_thread(chatledger, "runs", "list", "--live", "--json", url=database.url)
            shown = await asyncio.to_thread(chatledger, "runs", "list", "--live", url=database.url)
    waiting = {"call-0": "costs call-0", "call-1": "costs call-1"}
    names = ("run_id", "state", "user_id", "attempt", "waiting")
    assert [tuple([one[name] for name in names]) for one in listed.json["items"]] == [
        (run_id, "paused", None, 1, waiting),
        (other.run.run_id, "left", "ada", 0, {}),
        (held.run.run_id, "working", None, 1, {}),
    ]
    assert [(one["paused_at"] is None, one["until"] is None) for one in listed.json["items"]] == [
        (False, True), (True, True), (True, False)
    ]  # fmt: skip
    headings, paused, left, working = shown.out.splitlines()
    assert headings.lower().split() == ["run", "thread", "user", "agent", "state", "since", "attempt", "started"]
    since = datetime.fromisoformat(listed.json["items"][0]["paused_at"])
    assert f"waits for call-0, call-1  {since:%Y-%m-%d %H:%M:%S}  " in paused
    assert ("left" in left, "working" in working) == (True, True)
    alone = chatledger("runs", "list", "--live", "--thread", "a", "--json", url=database.url)
    assert [one["run_id"] for one in alone.json["items"]] == [other.run.run_id]
    refused = chatledger("runs", "list", "--live", "--status", "failed", url=database.url)
    assert (refused.code, "leave --status out" in refused.err) == (2, True)


async def test_live_answers_come_in_pages_and_a_user_sees_its_own(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        answers = [
            await ledger.user(user).answers.start(f"{user}-{n}", "?", agent="weather", create=True)
            for user in ("ada", "bob")
            for n in range(13)
        ]
        pages: list[list[str]] = []
        cursor = None
        while not pages or cursor is not None:
            more = () if cursor is None else ("--cursor", cursor)
            page = await asyncio.to_thread(
                chatledger, "runs", "list", "--live", "--limit", 10, "--json", *more, url=database.url
            )
            pages.append([one["run_id"] for one in page.json["items"]])
            cursor = page.json["next_cursor"]
    assert [len(page) for page in pages] == [10, 10, 6]
    assert list(chain(*pages)) == [answer.run.run_id for answer in answers]


async def test_a_damaged_reason_is_said_beside_the_live_answers(database: Database, tmp_path: Path) -> None:
    key = bytes(range(32))
    agent, _ = asking(calls=2)
    async with (
        Ledger.open(database.url, encryption=KeyRing({"k": key})) as ledger,
        ledger.answers.serve({"weather": agent}, lease=30),
    ):
        for answer in [await ledger.answers.start(thread, "Tokyo?", create=True) for thread in ("a", "b")]:
            await soon(answer.wait())
    await query(database, "UPDATE run_decisions SET pending_reason = 'plain' WHERE thread_id = 'a' AND idx = 1")
    keys = tmp_path / "keys.json"
    keys.touch(0o600)
    keys.write_text(json.dumps({"default": {"keys": {"k": base64.b64encode(key).decode()}}}))
    listed = chatledger("--keys", keys, "runs", "list", "--live", "--json", url=database.url)
    assert listed.code == 1
    assert [one["thread_id"] for one in listed.json["items"]] == ["b"]
    assert "run_decisions.pending_reason" in listed.error
