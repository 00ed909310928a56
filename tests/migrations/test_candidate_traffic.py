"""A database of the release candidate is upgraded while the candidate's own program serves it, and goes on beside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from chatledger import ChatMessage
from chatledger.admin import migrate, schema_status
from tests.conftest import Database
from tests.migrations.access import fetch, schema_of
from tests.migrations.released.candidate import KINDS
from tests.migrations.released.candidate.served import LONGEST, Server, run_old, serving
from tests.migrations.released.candidate.serving import RESULT, WORDS, make_agents, opened
from tests.migrations.revisions import HEAD, revisions

QUESTION = "question 0"
TEXT = "".join(WORDS)
UNKNOWN = "The tool was interrupted. It is unknown whether it ran."
RESULTS = (RESULT, RESULT, "The call was refused: nobody", "It snows.")
PAUSED = [f"paused {number}" for number in range(len(RESULTS))]
DELETED = ("deleted", "erased", "deleted while it goes on")
SHARED = ("words", "tools", "refunds")
ALL = (*SHARED, "slow", "once")

pytestmark = pytest.mark.old_program


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_of_the_candidate_is_upgraded_under_traffic(empty: Database, kind: str, tmp_path: Path) -> None:
    """Of two old processes one is killed before, and the other goes on. Of two new ones the first is killed too, and
    the second serves beside the old one, until that ends.
    """
    assert run_old("make", empty, kind).returncode == 0
    newer = revisions().index(HEAD) - revisions().index(str(schema_status(empty.url).found))
    with (
        serving(empty, kind, "old", tmp_path, *SHARED, old=True) as old,
        serving(empty, kind, "killed", tmp_path, *ALL, old=True) as killed,
    ):
        for thread in DELETED:
            old.do("create", thread, "ada" if thread == "erased" else "bob")
        for server in (old, killed):
            server.go_on()
        left = leave(killed)
        paused = [old.do("start", thread, "refunds") for thread in PAUSED]
        killed.kill()
        if empty.kind == "postgresql":
            migrate(empty.url)
        with serving(empty, kind, "first", tmp_path, *SHARED, old=False) as first:  # it migrates a file
            first.go_on()
            assert schema_status(empty.url).found == HEAD
            left |= old_takes_over(empty, old, first)
        with serving(empty, kind, "new", tmp_path, *ALL, old=False) as new:
            new.go_on()
            old.go_on()
            assert ("SchemaMismatch" in run_old("open", empty, kind).stderr) == (newer > 1)
            old_deletes_what_new_answers(empty, old, new)
            old.do("approve", paused[0])
            old.go_on()
            old.end()
            new.go_on()
            new.end()
    threads, open_runs = column(empty, "threads", "thread_id"), column(empty, "run_leases", "run_id")
    written = asyncio.run(end_all(empty, kind, paused, threads, open_runs))
    assert column(empty, "run_leases", "run_id") == []
    assert set(column(empty, "runs", "status")) == {"completed"}
    left |= {thread: [QUESTION, "", result, TEXT] for thread, result in zip(PAUSED, RESULTS, strict=True)}
    assert {thread: written[thread] for thread in left} == left
    for server in (old, killed, first, new):
        check_acknowledged(written, server)


async def end_all(
    database: Database, kind: str, paused: Sequence[str], threads: Sequence[str], open_runs: Sequence[str]
) -> dict[str, list[str]]:
    """Decide about the paused answers but the first, about which the old program did, end what is open, and check and
    read each thread.
    """
    async with opened(database.url, kind) as ledger, ledger.answers.serve(make_agents(lambda *_: None)):
        await ledger.answers.resume(paused[1], approve=["call-0"])
        await ledger.answers.resume(paused[2], refuse={"call-0": "nobody"})
        await ledger.answers.resume(paused[3], {"call-0": "It snows."})
        async with asyncio.timeout(LONGEST):
            for run_id in open_runs:
                await (await ledger.answers.get(run_id)).wait()
        assert [finding async for checked in ledger.check() for finding in checked.findings] == []
        return {thread: [text_of(message) async for message in ledger.messages.iterate(thread)] for thread in threads}


def text_of(message: ChatMessage) -> str:
    assert message.state == "complete"
    return message.text or ""


def check_acknowledged(written: dict[str, list[str]], server: Server) -> None:
    """Each thread has what was acknowledged, once and whole, and at most one turn more: the process ended before it
    wrote that down.
    """
    for event in ("appended", "answered"):
        for thread, count in server.acknowledged(event).items():
            turns = [turn_of(thread, number) for number in range(count + 1)]
            assert written[thread] in (list(chain(*turns[:count])), list(chain(*turns))), written[thread][-5:]


def turn_of(thread: str, number: int) -> list[str]:
    if "appends" in thread:
        return [f"question {number}", f"answer {number}"]
    return [f"question {number}", *(["", RESULT] if thread.endswith("tools") else []), TEXT]


def leave(server: Server) -> dict[str, list[str]]:
    """Start answers that only this process works on until it is killed: the messages that each thread must get."""
    server.do("start", "left in the text", "slow")
    server.do("start", "left in a tool", "once")
    server.until("slow")
    server.until("once")
    return {"left in the text": [QUESTION, TEXT], "left in a tool": [QUESTION, "", UNKNOWN, TEXT]}


def old_takes_over(database: Database, old: Server, new: Server) -> dict[str, list[str]]:
    """Of a new process that is killed the old one, alone, ends each answer."""
    paused = new.do("start", "taken over", "refunds")
    new.kill()
    old.do("approve", paused)
    over = time.monotonic() + LONGEST
    while {"taken over", "first words", "first tools"} & set(column(database, "run_leases", "thread_id")):
        assert time.monotonic() < over
        time.sleep(0.1)
    return {"taken over": [QUESTION, "", RESULT, TEXT]}


def old_deletes_what_new_answers(database: Database, old: Server, new: Server) -> None:
    for thread in DELETED[:2]:
        new.do("start", thread, "refunds")
    new.do("start", DELETED[2], "slow")
    new.until("slow", 1 + len(new.events("slow")))
    assert set(column(database, "run_leases", "thread_id")) >= set(DELETED)
    for command in (("delete", DELETED[0]), ("erase", "ada"), ("delete", DELETED[2])):
        assert old.do(*command)["runs"] == 1
    for table in ("threads", "runs", "run_leases", "run_decisions", "messages"):
        assert set(DELETED).isdisjoint(column(database, table, "thread_id"))


def column(database: Database, table: str, name: str) -> list[str]:
    schema = schema_of(database)
    return [row[0] for row in fetch(database, f"SELECT {name} FROM {schema + '.' if schema else ''}{table}")]
