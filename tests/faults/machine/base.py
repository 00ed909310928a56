"""The base of all rules of the machine: the ledger, the model, and a way to make a call and to expect its error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition

from chatledger import ChatMessage, Ledger, NewThread, Put, RuleViolation, ThreadNotFound, VersionConflict
from chatledger.errors import DraftLive, RunConflict
from tests.faults.machine.model import Model, ModelThread, Scope, answers, open_calls
from tests.views import of_user

T = TypeVar("T")
Rule = TypeVar("Rule", bound=Callable[..., None])

THREADS = ("a", "é\0")
USERS = ("ada", "bob")
threads = st.sampled_from(THREADS)
run_ids = st.sampled_from(("r1", "r2", "r3"))
texts = st.text(max_size=4)


def needs(fits: Callable[[ModelThread], bool]) -> Callable[[Rule], Rule]:
    """A precondition: some thread fits."""
    return precondition(lambda self: any(map(fits, self.model.threads.values())))


def has_removed(found: ModelThread) -> bool:
    """Whether a message left a branch of the thread."""
    return any(one.kind != "revised" for said in found.changes.values() for one in said)


class Base(RuleBasedStateMachine):
    """Each example works as a tenant of its own in one database."""

    ledger: Ledger
    runner: asyncio.Runner
    appended: list[int]
    """How many messages, in all examples: one number."""

    def __init__(self) -> None:
        super().__init__()
        self.own = self.ledger.tenant(uuid4().hex)
        self.model = Model()
        self.edits: list[tuple[str, list[ChatMessage], Any]] = []
        self.texts = 0

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def refuses(self, error: type[Exception], call: Coroutine[Any, Any, object]) -> None:
        with pytest.raises(error):
            self.do(call)

    def of(self, thread: str, call: Callable[[], Coroutine[Any, Any, object]]) -> ModelThread | None:
        """The model of the thread. Without one, the call must say so."""
        found = self.model.threads.get(thread)
        if found is None:
            self.refuses(ThreadNotFound, call())
        return found

    def first(self, fits: Callable[[ModelThread], bool]) -> tuple[str, ModelThread]:
        """A thread that is as a rule needs it."""
        return next((name, found) for name, found in self.model.threads.items() if fits(found))

    def new_text(self) -> str:
        """A text that no other message has."""
        self.texts += 1
        return f"text {self.texts}"

    def append_as(
        self, thread: str, messages: list[ChatMessage], *, user: str | None = None, **options: Any
    ) -> list[ChatMessage]:
        """Append, as a user if there is one, and expect what the model says. The messages that were stored."""
        appending = of_user(self.own, user).messages.append(thread, messages, **options)
        found = self.model.threads.get(thread)
        if isinstance(made := options.get("create"), NewThread):
            found = found or ModelThread(made.title, user)
        if found is None or user not in (None, found.user_id):
            self.refuses(ThreadNotFound, appending)
            return []
        error = self._refusal(thread, found, messages, options)
        if error is not None:
            self.refuses(error, appending)
            return []
        stored = self.do(appending)
        assert (stored.messages[0].seq, stored.last_seq) == (found.end + 1, found.end + len(messages))
        assert not stored.replayed
        self.model.threads[thread] = found
        found.extend(stored.messages)
        self.assert_answers(found.path, stored.messages, whole=True)
        self.appended[0] += len(stored.messages)
        if (run := options.get("run_id")) is not None:
            self.model.runs.setdefault(run, (thread, "running"))
        for key, value in options.get("kv", {}).items():
            self.take_value(("thread", thread), key, value.value if isinstance(value, Put) else value)
        return stored.messages

    def _refusal(
        self, thread: str, found: ModelThread, messages: list[ChatMessage], options: dict[str, Any]
    ) -> type[Exception] | None:
        run = options.get("run_id")
        if options.get("expected") == 0 and found.end:
            return VersionConflict
        if found.is_live:
            return DraftLive
        waiting = open_calls(found.path)
        answered = messages[0].tool_call_id
        if answered not in waiting if waiting else answered is not None:
            return RuleViolation
        if run is not None and self.model.runs.get(run, (thread, ""))[0] != thread:
            return RunConflict
        for key, value in options.get("kv", {}).items():
            expected = value.expected if isinstance(value, Put) else None
            if expected not in (None, self.model.version(("thread", thread), key)):
                return VersionConflict
        return None

    def take_value(self, scope: Scope, key: str, value: Any) -> None:
        """A value that was written by now, with its version."""
        stored = self.do(self.own.kv.get(scope, key))
        assert stored is not None
        assert stored.value == value
        self.model.put(scope, key, value, stored.version)

    def assert_answers(self, path: Sequence[ChatMessage], page: Sequence[ChatMessage], *, whole: bool = False) -> None:
        """Each result of the page says which call it answers, where the page shows that call and all between. `whole`:
        the messages are those of an append, which knows it anyway.
        """
        calls = answers(path)
        first = page[0].seq or 0 if page else 0
        for message in page:
            if message.message_id not in calls:
                assert message.answers is None, "a message that is no result answers a call"
                continue
            place, is_next = calls[message.message_id]
            told = whole or (is_next and place.seq >= first)
            assert message.answers == place or (not told and message.answers is None), "a result answers another call"
