"""Every public call in any order, held against a model of a few lists and dictionaries, on both databases.

Each example works as a tenant of its own in one database. The conversations are simple, so that the model can tell what
strict rules refuse: the rules themselves have their own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chatledger import (
    AlreadyExists,
    BranchNotFound,
    ChatMessage,
    DraftLive,
    Feedback,
    IdConflict,
    InvalidArgument,
    InvalidCursor,
    Ledger,
    RuleViolation,
    RunConflict,
    RunNotFound,
    ThreadNotFound,
    VersionConflict,
)
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, user

T = TypeVar("T")

THREADS = ("a", "é\0")
RUNS = ("r1", "r2", "r3")
threads = st.sampled_from(THREADS)
run_ids = st.sampled_from(RUNS)


@dataclass
class ModelThread:
    """Its branches, each the texts and ids along its path; which is active; and which call waits on each."""

    title: str | None = None
    user_id: str | None = None
    paths: list[list[ChatMessage]] = field(default_factory=lambda: [[]])
    active: int = 0
    marks: list[tuple[str, list[ChatMessage], int]] = field(default_factory=list)
    """Marks of the active branch: what stood on it then, and how many branches the thread had. Activating makes all of
    them stale.
    """

    @property
    def path(self) -> list[ChatMessage]:
        return self.paths[self.active]

    def is_open(self, messages: list[ChatMessage] | None = None) -> bool:
        path = self.path if messages is None else messages
        return bool(path) and bool(path[-1].tool_calls)

    def is_live(self, messages: list[ChatMessage] | None = None) -> bool:
        """Whether somebody is still writing the last message."""
        path = self.path if messages is None else messages
        return bool(path) and path[-1].state == "partial"


@dataclass
class Model:
    threads: dict[str, ModelThread] = field(default_factory=dict)
    runs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The thread and the status of each."""
    scores: list[tuple[str, str, float]] = field(default_factory=list)
    keys: dict[tuple[str, str], list[ChatMessage]] = field(default_factory=dict)
    """What was appended to a thread under an idempotency key."""


class Machine(RuleBasedStateMachine):
    ledger: Ledger
    runner: asyncio.Runner
    appended: list[int]
    """How many messages, in all examples: one number."""

    def __init__(self) -> None:
        super().__init__()
        self.own = self.ledger.tenant(uuid4().hex)
        self.model = Model()
        self.edits: list[tuple[str, list[ChatMessage], Any]] = []

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def refuses(self, error: type[Exception], call: Coroutine[Any, Any, object]) -> None:
        with pytest.raises(error):
            self.do(call)

    @initialize()
    def begin(self) -> None:
        """Something that the first steps can work on."""
        self.create("a", None, None)
        for text in ("one", "two"):
            self.append_turn("a", text, None)

    # --- Threads

    @rule(thread=threads, title=st.none() | st.text(max_size=3), user_id=st.sampled_from([None, "ada", "bob"]))
    def create(self, thread: str, title: str | None, user_id: str | None) -> None:
        making = self.own.threads.create(thread, title=title, user_id=user_id)
        if thread in self.model.threads:
            self.refuses(AlreadyExists, making)
            return
        self.do(making)
        self.model.threads[thread] = ModelThread(title, user_id)

    @rule(thread=threads, title=st.text(max_size=3))
    def rename(self, thread: str, title: str) -> None:
        renaming = self.own.threads.update(thread, title=title)
        if thread not in self.model.threads:
            self.refuses(ThreadNotFound, renaming)
            return
        self.do(renaming)
        self.model.threads[thread].title = title

    @rule(thread=threads)
    def delete(self, thread: str) -> None:
        deleting = self.own.threads.delete(thread)
        if thread not in self.model.threads:
            self.refuses(ThreadNotFound, deleting)
            return
        gone = self.model.threads.pop(thread)
        rows = self.do(deleting).rows
        assert rows["messages"] == len({message.message_id for path in gone.paths for message in path})
        assert rows["branches"] == len(gone.paths)
        runs = {run for run, (of, _) in self.model.runs.items() if of == thread}
        assert rows["feedback"] == sum(run in runs for run, _, _ in self.model.scores)
        self.model.runs = {run: said for run, said in self.model.runs.items() if run not in runs}
        self.model.scores = [score for score in self.model.scores if score[0] not in runs]
        self.model.keys = {place: said for place, said in self.model.keys.items() if place[0] != thread}

    # --- Messages

    def append_as(self, thread: str, messages: list[ChatMessage], **options: Any) -> None:
        """Append, and expect what the model says."""
        appending = self.own.messages.append(thread, messages, **options)
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, appending)
            return
        expected = options.get("expected_version")
        if expected is not None and len(found.paths) > 1:
            self.refuses(InvalidArgument, appending)
            return
        if expected is not None and expected != len(found.path):
            self.refuses(VersionConflict, appending)
            return
        if found.is_live():
            self.refuses(DraftLive, appending)
            return
        if messages and found.is_open() != (messages[0].role == "tool"):
            self.refuses(RuleViolation, appending)
            return
        run = options.get("run_id")
        if run is not None and self.model.runs.get(run, (thread, ""))[0] != thread:
            self.refuses(RunConflict, appending)
            return
        stored = self.do(appending)
        assert (stored.first_seq, stored.version) == (len(found.path) + 1, len(found.path) + len(messages))
        assert not stored.replayed
        found.path.extend(stored.messages)
        self.appended[0] += len(stored.messages)
        if run is not None:
            self.model.runs.setdefault(run, (thread, "running"))

    @rule(thread=threads, text=st.text(max_size=5), run=st.none() | run_ids)
    def append_turn(self, thread: str, text: str, run: str | None) -> None:
        self.append_as(thread, [user(text), assistant(f"{text}!")], run_id=run)

    @rule(thread=threads, arguments=st.sampled_from(["{}", '{"a": 1}']))
    def append_call(self, thread: str, arguments: str) -> None:
        self.append_as(thread, [user("?"), assistant(calls=[call("call_0", arguments=arguments)])])

    @rule(thread=threads, text=st.text(max_size=5))
    def append_result(self, thread: str, text: str) -> None:
        self.append_as(thread, [result("call_0", text)])

    @rule(thread=threads, version=st.integers(0, 6))
    def append_if_at(self, thread: str, version: int) -> None:
        self.append_as(thread, [user("at"), assistant("!")], expected_version=version)

    @rule(thread=threads, key=st.sampled_from(["k1", "k2"]))
    def append_with_a_key(self, thread: str, key: str) -> None:
        """Repeated: the first result again, wherever the thread stands by now and whatever branch is active."""
        earlier = self.model.keys.get((thread, key))
        messages = [user(key), assistant(f"{key}!")]
        if earlier is None:
            found = self.model.threads.get(thread)
            before = 0 if found is None else len(found.path)
            self.append_as(thread, messages, idempotency_key=key)
            if found is not None and len(found.path) > before:
                self.model.keys[thread, key] = found.path[before:]
            return
        found = self.model.threads[thread]
        again = self.do(self.own.messages.append(thread, messages, idempotency_key=key))
        assert (again.replayed, again.messages) == (True, earlier)

    @rule(thread=threads)
    def repeat_by_ids(self, thread: str) -> None:
        """What stands on the path is found there, inherited or not; what stands only on another one is a conflict."""
        found = self.model.threads.get(thread)
        for path in found.paths if found else ():
            for message in path[-2:]:
                repeating = self.own.messages.append(thread, [message])
                if message.state == "partial":
                    repeating.close()
                elif found is not None and message in found.path:
                    again = self.do(repeating)
                    assert (again.replayed, again.messages) == (True, [message])
                else:
                    self.refuses(IdConflict, repeating)

    @rule(thread=threads)
    def mark(self, thread: str) -> None:
        found = self.model.threads.get(thread)
        if found is not None:
            mark = self.do(self.own.messages.history(thread, last=1)).mark
            found.marks.append((mark, list(found.path), len(found.paths)))

    @rule(thread=threads)
    def append_if_unmoved(self, thread: str) -> None:
        found = self.model.threads.get(thread)
        if found is None or not found.marks:
            return
        mark, path, branches = found.marks[-1]
        if (path, branches) == (found.path, len(found.paths)):
            nothing = self.do(self.own.messages.append(thread, [], expected=mark))
            assert (nothing.version, nothing.mark) == (len(path), mark)
        else:
            self.refuses(VersionConflict, self.own.messages.append(thread, [user("at"), assistant("!")], expected=mark))

    @rule(thread=threads)
    def close_open_calls(self, thread: str) -> None:
        closing = self.own.messages.close_open_calls(thread, reason="gone")
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, closing)
            return
        if found.is_live():
            self.refuses(DraftLive, closing)
            return
        was_open = found.is_open()
        stored = self.do(closing)
        assert len(stored.messages) == was_open
        found.path.extend(stored.messages)

    @rule(thread=threads, text=st.text(max_size=3))
    def sync(self, thread: str, text: str) -> None:
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, self.own.messages.sync(thread, [user(text)]))
            return
        if found.is_open():
            return
        more = [user(text), assistant("synced")]
        if found.is_live():
            self.refuses(DraftLive, self.own.messages.sync(thread, [*found.path, *more]))
            return
        stored = self.do(self.own.messages.sync(thread, [*found.path, *more]))
        found.path.extend(stored.messages)
        assert self.do(self.own.messages.sync(thread, found.path)).replayed

    @rule(first=threads, second=threads, text=st.text(max_size=3), commit=st.booleans())
    def transaction(self, first: str, second: str, text: str, commit: bool) -> None:
        """Two appends with one commit, or with none."""
        found = [self.model.threads.get(thread) for thread in (first, second)]
        if any(one is None or one.is_open() or one.is_live() for one in found):
            return

        async def both() -> list[list[ChatMessage]]:
            stored = []
            async with self.own.begin() as tx:
                for thread in (first, second):
                    appended = await tx.messages.append(thread, [user(text), assistant("both")])
                    stored.append(appended.messages)
                if not commit:
                    raise KeyError
            return stored

        if not commit:
            self.refuses(KeyError, both())
            return
        for one, messages in zip(found, self.do(both()), strict=True):
            assert one is not None
            one.path.extend(messages)

    # --- Drafts

    @rule(thread=threads)
    def begin_a_draft(self, thread: str) -> None:
        """Its writer stops, and holds its lease for longer than the test runs."""
        draft = self.own.stream(thread, interval=3_600, lease=7_200)

        async def enter() -> None:
            await draft.__aenter__()
            await draft._stop()

        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, enter())
        elif found.is_live():
            self.refuses(DraftLive, enter())
        elif not found.is_open():
            self.do(enter())
            found.path.append(draft.message)
            self.appended[0] += 1

    @rule(thread=threads, text=st.text(max_size=3))
    def complete_the_draft(self, thread: str, text: str) -> None:
        found = self.model.threads.get(thread)
        if found is None or not found.is_live():
            return
        whole = found.path[-1].model_copy(update={"content": text, "state": "complete"})
        found.path[-1:] = self.do(self.own.messages.append(thread, [whole])).messages

    @rule(thread=threads, text=st.text(max_size=3))
    def interrupt_the_draft(self, thread: str, text: str) -> None:
        found = self.model.threads.get(thread)
        if found is None or not found.is_live():
            return
        more = [user(text), assistant("at once")]
        stored = self.do(self.own.messages.append(thread, more, on_open_calls="interrupt"))
        cut = found.path[-1].model_copy(update={"state": "interrupted"})
        found.path[-1:] = [cut, *stored.messages]

    # --- Branches

    @rule(thread=threads, at=st.integers(0, 8), activate=st.booleans())
    def fork(self, thread: str, at: int, activate: bool) -> None:
        forking = self.own.branches.fork(thread, at, activate=activate)
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, forking)
        elif at > len(found.path):
            self.refuses(InvalidCursor, forking)
        elif found.is_open(found.path[:at]) or found.is_live(found.path[:at]):
            self.refuses(RuleViolation, forking)
        else:
            branch = self.do(forking)
            assert (branch.branch, branch.version, branch.active) == (len(found.paths), at, activate)
            found.paths.append(found.path[:at])
            found.active = branch.branch if activate else found.active

    @rule(thread=threads, back=st.integers(-1, 3), text=st.text(max_size=3), by_id=st.booleans())
    def edit(self, thread: str, back: int, text: str, by_id: bool) -> None:
        """Go back, and on in another way. At the end of the branch it is a plain append."""
        found = self.model.threads.get(thread)
        after = max(0, (len(found.path) if found else 0) - back)
        if found is None or not back:
            self.append_as(thread, [user(text), assistant("at the end")], after=after)
            return
        shared = found.path[:after]
        place = shared[-1].message_id if by_id and shared and back > 0 else after
        editing = self.own.messages.append(thread, [user(text), assistant("edited")], after=place)
        if after > len(found.path):
            self.refuses(InvalidCursor, editing)
        elif after == len(found.path):
            editing.close()
        elif found.is_open(shared):
            self.refuses(RuleViolation, editing)
        else:
            stored = self.do(editing)
            assert (stored.first_seq, stored.version) == (after + 1, after + 2)
            self.appended[0] += 2
            found.paths.append([*shared, *stored.messages])
            found.active = len(found.paths) - 1
            self.edits.append((thread, stored.messages, place))

    @rule()
    def repeat_an_edit(self) -> None:
        """The first result, whatever is active by now, and no other branch."""
        for thread, messages, place in self.edits[-2:]:
            found = self.model.threads.get(thread)
            if found is None or not any(messages[0] in path for path in found.paths):
                continue
            whole = next(path for path in found.paths if messages[0] in path)
            index = whole.index(messages[0])
            again = self.do(self.own.messages.append(thread, whole[index : index + 2], after=place))
            assert (again.replayed, again.messages) == (True, messages)

    @rule(thread=threads, seq=st.integers(1, 4))
    def alternatives(self, thread: str, seq: int) -> None:
        found = self.model.threads.get(thread)
        if found is None or seq > len(found.path):
            return
        before = [message.message_id for message in found.path[: seq - 1]]
        ids = {
            path[seq - 1].message_id
            for path in found.paths
            if len(path) >= seq and [message.message_id for message in path[: seq - 1]] == before
        }
        listed = self.do(self.own.branches.alternatives(thread, seq))
        assert {one.message.message_id for one in listed} == ids
        assert [one.message.message_id for one in listed if one.current] == [found.path[seq - 1].message_id]
        for one in listed:
            assert found.paths[one.branch][seq - 1].message_id == one.message.message_id

    @rule(thread=threads, number=st.integers(0, 3))
    def activate(self, thread: str, number: int) -> None:
        activating = self.own.branches.activate(thread, number)
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, activating)
        elif number >= len(found.paths):
            self.refuses(BranchNotFound, activating)
        else:
            self.do(activating)
            found.active = number
            found.marks.clear()

    # --- Runs and feedback

    @rule(thread=threads, run=run_ids)
    def start(self, thread: str, run: str) -> None:
        starting = self.own.runs.start(thread, run_id=run)
        if thread not in self.model.threads:
            self.refuses(ThreadNotFound, starting)
        elif self.model.runs.get(run, (thread, ""))[0] != thread:
            self.refuses(RunConflict, starting)
        else:
            self.do(starting)
            self.model.runs.setdefault(run, (thread, "running"))

    @rule(run=run_ids, status=st.sampled_from(["completed", "failed"]))
    def finish(self, run: str, status: Any) -> None:
        finishing = self.own.runs.finish(run, status=status)
        if run not in self.model.runs:
            self.refuses(RunNotFound, finishing)
        elif self.model.runs[run][1] not in ("running", status):
            self.refuses(RunConflict, finishing)
        else:
            self.do(finishing)
            self.model.runs[run] = self.model.runs[run][0], status

    @rule(run=run_ids, score=st.integers(0, 5))
    def record(self, run: str, score: int) -> None:
        recording = self.own.feedback.record(Feedback(run_id=run, key="stars", score=score))
        if run not in self.model.runs:
            self.refuses(RunNotFound, recording)
            return
        self.do(recording)
        self.model.scores.append((run, "stars", score))

    # --- What can be read

    @rule(thread=threads, size=st.integers(1, 6))
    def windows(self, thread: str, size: int) -> None:
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, self.own.messages.history(thread))
            return
        page = self.do(self.own.messages.history(thread, limit=size))
        assert page.messages == found.path[:size]
        back = self.do(self.own.messages.history(thread, limit=size, before=len(found.path) + 1))
        assert back.messages == found.path[-size:]
        last = self.do(self.own.messages.history(thread, last=size)).messages
        assert last == found.path[len(found.path) - len(last) :]
        if found.path:
            place = found.path[-1]
            assert self.do(self.own.messages.get(thread, place.message_id or "")) == place

    @invariant()
    @precondition(lambda self: bool(self.model.threads))
    def all_is_as_the_model_says(self) -> None:
        self.do(self._compare())

    async def _compare(self) -> None:
        listed = {thread.thread_id: thread for thread in await self.own.threads.list()}
        assert listed.keys() == self.model.threads.keys()
        for name, found in self.model.threads.items():
            thread = listed[name]
            assert (thread.title, thread.user_id, thread.active_branch) == (found.title, found.user_id, found.active)
            assert thread.message_count == len(found.path)
            branches = await self.own.branches.list(name)
            assert [(one.branch, one.version) for one in branches] == [
                (number, len(path)) for number, path in enumerate(found.paths)
            ]
            for number, path in enumerate(found.paths):
                stored = (await self.own.messages.history(name, branch=number)).messages
                assert stored == path, f"branch {number} holds other messages than the model"
        runs = {run.run_id: (run.thread_id, run.status) for run in await self.own.runs.list()}
        assert runs == self.model.runs
        scores = sorted((one.run_id, one.key, one.score) for one in await self.own.feedback.list())
        assert scores == sorted(self.model.scores)


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
    assert run_any_calls(sqlite_database, examples=EXAMPLES, steps=25, keys=KEYS) > 2 * EXAMPLES


EXAMPLES = 20
