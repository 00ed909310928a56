"""Looking after answers: what one waits for, a decision, and a stop."""

from __future__ import annotations

import pytest

from chatledger import Ledger
from tests.answers.agents import Model, Tools, agent_of
from tests.answers.test_answers import soon, texts
from tests.answers.test_pauses import asking
from tests.cli.commands import chatledger
from tests.conftest import Database


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
