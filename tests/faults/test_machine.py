"""Every public call in any order, held against a model of a few lists and dictionaries, on both databases.

The rules stand in `machine`, one file for each noun. The conversations are simple, so that the model can tell what
strict rules refuse: the rules themselves have their own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from chatledger import ChatMessage, Ledger, Newest, Oldest
from chatledger.repositories.history import with_draft
from tests.conftest import KEYS, Database
from tests.conversations import result
from tests.faults.machine.base import THREADS, threads
from tests.faults.machine.branches import BranchRules
from tests.faults.machine.changes import ChangeRules
from tests.faults.machine.drafts import DraftRules
from tests.faults.machine.messages import MessageRules
from tests.faults.machine.model import ModelThread
from tests.faults.machine.runs import RunRules
from tests.faults.machine.threads import ThreadRules
from tests.faults.machine.values import ValueRules

EXAMPLES = 20
PREVIEWED = 50
"""The positions back from the end that a preview looks at."""


class Machine(ThreadRules, MessageRules, ChangeRules, BranchRules, DraftRules, ValueRules, RunRules):
    @initialize()
    def begin(self) -> None:
        """Something that the first steps can work on."""
        for thread, user_id in zip(THREADS, (None, "ada"), strict=True):
            self.create(thread, None, user_id)
            self.append_turn(thread, "one", None)
        self.append_call("a", "{}", 2)
        for number in (1, 0):
            self.append_as("a", [result(f"call_{number}", "!")])
        self.fork("a", 2, False)

    @rule(thread=threads, size=st.integers(1, 6))
    def windows(self, thread: str, size: int) -> None:
        found = self.of(thread, lambda: self.own.messages.history(thread))
        if found is None:
            return
        finished = [one for one in found.path if one.state != "partial"]
        page = self.do(self.own.messages.history(thread, Oldest(size))).messages
        assert page == finished[:size]
        before_end = Newest(size, before=found.end + 1)
        back = self.do(self.own.messages.history(thread, before_end, branch=found.active)).messages
        last = self.do(self.own.messages.history(thread, Newest(size)))
        assert with_draft(last) == found.path[len(found.path) - len(with_draft(last)) :]
        assert back == last.messages == finished[len(finished) - len(back) :]
        assert len(back) >= min(size, len(finished))
        for messages in (page, back, last.messages):
            self.assert_answers(found.path, messages)
        for one in found.path[-1:]:
            assert self.do(self.own.messages.get(thread, one.message_id or "")) == one
            assert one in self.do(self.own.messages.find(one.message_id or ""))

    @invariant()
    @precondition(lambda self: bool(self.model.threads))
    def all_is_as_the_model_says(self) -> None:
        self.do(self._compare())

    async def _compare(self) -> None:
        await self._compare_searches("e", 3)
        await self._compare_searches("one", 100)
        listed = {thread.thread_id: thread for thread in await self.own.threads.list(archived=None)}
        assert listed.keys() == self.model.threads.keys()
        for name, found in self.model.threads.items():
            thread = listed[name]
            assert (thread.title, thread.user_id, thread.active_branch) == (found.title, found.user_id, found.active)
            assert (thread.metadata, thread.version) == (found.metadata, found.version)
            assert (thread.archived_at is not None) == found.archived
            assert (thread.message_count, thread.preview) == (len(found.path), preview(found))
            branches = await self.own.branches.list(name)
            ends = [(number, branch.end) for number, branch in enumerate(found.branches)]
            assert [(one.branch, one.last_seq) for one in branches] == ends
            for number, branch in enumerate(found.branches):
                stored = await self.own.messages.history(name, branch=number)
                assert with_draft(stored) == branch.path, f"branch {number} holds other messages than the model"
                assert "partial" not in [one.state for one in stored.messages]
                self.assert_answers(branch.path, stored.messages)
        runs = {run.run_id: (run.thread_id, run.status) for run in await self.own.runs.list()}
        assert runs == self.model.runs
        scores = sorted((one.run_id, one.key, one.score) for one in await self.own.feedback.list(events=True))
        assert scores == sorted(self.model.scores)

    async def _compare_searches(self, text: str, size: int) -> None:
        """A search finds the messages of the active branches that hold the text, and no others."""
        found: list[tuple[str, int | None]] = []
        cursor = None
        while True:
            page = await self.own.messages.search(text, limit=size, cursor=cursor)
            found += [(hit.thread_id, hit.seq) for hit in page]
            if (cursor := page.next_cursor) is None:
                break
        assert sorted(found) == sorted(
            (name, one.seq)
            for name, thread in self.model.threads.items()
            for one in thread.path
            if any(text in said.lower() for said in words(one))
        ), "a search finds other messages than the model"
        named = {name for name, thread in self.model.threads.items() if text in (thread.title or "").lower()}
        threads = await self.own.threads.search(text, limit=1_000)
        assert {hit.thread_id for hit in threads} == {name for name, _ in found} | named


def words(message: ChatMessage) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls or ():
        yield call.name
        yield str(call.arguments)


def preview(found: ModelThread) -> str | None:
    near = [one for one in found.path if (one.seq or 0) > found.end - PREVIEWED and one.role in ("user", "assistant")]
    return next((one.text for one in reversed(near) if one.text), None)


def run_any_calls(database: Database, *, examples: int, steps: int, seed: int | None = None, **options: Any) -> int:
    """How many messages were appended. Without a seed: as the profile says."""

    async def opened() -> Ledger:
        ledger: Ledger = await database.open(**options)
        return ledger

    chosen = settings(max_examples=examples, stateful_step_count=steps)
    if seed is not None:
        chosen = settings(
            chosen, derandomize=False, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
    with asyncio.Runner() as runner:
        ledger = runner.run(opened())

        class Own(Machine):
            pass

        Own.ledger, Own.runner, Own.appended = ledger, runner, [0]
        try:
            run_state_machine_as_test(Own if seed is None else seeded(seed)(Own), settings=chosen)
        finally:
            runner.run(ledger.close())
        return Own.appended[0]


def test_any_calls_in_any_order(database: Database) -> None:
    assert run_any_calls(database, examples=EXAMPLES, steps=25) > 2 * EXAMPLES


def test_any_calls_in_any_order_with_keys(sqlite_database: Database) -> None:
    assert run_any_calls(sqlite_database, examples=EXAMPLES, steps=25, encryption=KEYS) > 2 * EXAMPLES
