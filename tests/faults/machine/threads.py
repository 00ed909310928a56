"""Threads: created, updated, archived, copied, deleted, and seen by one user."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from chatledger import NewThread, RuleViolation, ThreadNotFound, VersionConflict
from chatledger.errors import IdConflict, InvalidCursor
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.changes.copy import copy_until
from tests.conversations import assistant, user
from tests.faults.machine.base import THREADS, USERS, Base, texts, threads
from tests.faults.machine.model import ModelThread
from tests.views import of_user

user_ids = st.sampled_from(USERS)


class ThreadRules(Base):
    @rule(thread=threads, title=st.none() | texts, user_id=st.none() | user_ids)
    def create(self, thread: str, title: str | None, user_id: str | None) -> None:
        making = of_user(self.own, user_id).threads.create(thread, title=title)
        if thread in self.model.threads:
            self.refuses(IdConflict, making)
            return
        self.do(making)
        self.model.threads[thread] = ModelThread(title, user_id)

    @rule(thread=threads, title=texts, key=st.sampled_from("xyz"), merge=st.booleans(), off=st.integers(-1, 1))
    def update(self, thread: str, title: str, key: str, merge: bool, off: int) -> None:
        """`off`: how far the expected version is from the present one."""
        found = self.of(thread, lambda: self.own.threads.update(thread, title=title))
        if found is None:
            return
        metadata, expected = {key: title}, found.version + off
        updating = self.own.threads.update(thread, title=title, metadata=metadata, merge=merge, expected=expected)
        if off:
            self.refuses(VersionConflict, updating)
            return
        found.title, found.version = title, expected + 1
        found.metadata = {**(found.metadata or {}), **metadata} if merge else metadata
        stored = self.do(updating)
        assert (stored.metadata, stored.version) == (found.metadata, found.version)

    @rule(thread=threads, away=st.booleans())
    def archive(self, thread: str, away: bool) -> None:
        """Nothing but lists shows it."""
        threads = self.own.threads
        found = self.of(thread, lambda: threads.update(thread, archived=True))
        if found is None:
            return
        before = self.do(threads.get(thread)).archived_at
        stored = self.do(threads.update(thread, archived=away))
        assert (stored.archived_at is not None) == away
        assert before is None or stored.archived_at in (None, before)
        found.archived = away
        for archived in (True, False):
            ids = {name for name, one in self.model.threads.items() if one.archived == archived}
            assert {one.thread_id for one in self.do(threads.list(archived=archived))} == ids
            assert self.do(threads.count(archived=archived)) == len(ids)

    @precondition(lambda self: len(self.model.threads) == len(THREADS))  # else most steps would find no thread
    @rule(thread=threads)
    def delete(self, thread: str) -> None:
        gone = self.model.threads[thread]
        runs = {run for run, (of, _) in self.model.runs.items() if of == thread}
        kept = [said for scope, said in self.model.values.items() if scope[:2] == ("thread", thread)]
        expected = {
            "threads": 1,
            "branches": len(gone.branches),
            "messages": len(gone.all_messages()),
            "revisions": gone.rows,
            "runs": len(runs),
            "feedback": sum(run in runs for run, _, _ in self.model.scores),
            "kv": sum(map(len, kept)),
        }
        rows = self.do(self.own.threads.delete(thread)).rows
        assert {name: rows[name] for name in expected} == expected
        self.model.forget(thread)
        self.refuses(ThreadNotFound, self.own.threads.delete(thread))

    @rule(source=threads, copy=threads, back=st.integers(-1, 2), number=st.integers(0, 2))
    def copy(self, source: str, copy: str, back: int, number: int) -> None:
        """A path, or the beginning of it, as a thread of its own."""
        found = self.of(source, lambda: self.own.threads.copy(source, copy))
        if found is None or number >= len(found.branches):
            return
        branch = found.branches[number]
        at = branch.end - back
        if at < 0:
            return
        copying = copy_until(scope_of(self.own), source, copy, at, branch=number, fields={})
        shared = [one for one in branch.path if (one.seq or 0) <= at]
        if copy in self.model.threads:
            self.refuses(IdConflict, copying)
        elif at > branch.end:
            self.refuses(InvalidCursor, copying)
        elif any(one.state == "partial" for one in shared):
            self.refuses(RuleViolation, copying)
        else:
            self.do(copying)
            made = ModelThread(found.title, found.user_id, found.metadata)
            made.extend(
                [
                    one.model_copy(update={"thread_id": copy, "branch": 0, "seq": seq, "run_id": None})
                    for seq, one in enumerate(shared, 1)
                ]
            )
            self.model.threads[copy] = made

    @rule(user_id=user_ids)
    def look_as_a_user(self, user_id: str) -> None:
        """Threads of others, and of nobody, are not there."""
        view = self.own.user(user_id)
        own = {name for name, found in self.model.threads.items() if found.user_id == user_id}
        assert {one.thread_id for one in self.do(view.threads.list(archived=None))} == own
        for name in THREADS:
            if name not in own:
                self.refuses(ThreadNotFound, view.messages.history(name))
                self.refuses(ThreadNotFound, view.messages.pop(name))
                self.refuses(ThreadNotFound, view.kv.get(("thread", name), "k1"))
            else:
                assert with_draft(self.do(view.messages.history(name))) == self.model.threads[name].path

    @rule(thread=threads, user_id=user_ids, text=texts)
    def append_as_a_user(self, thread: str, user_id: str, text: str) -> None:
        found = self.model.threads.get(thread)
        view = self.own.user(user_id)
        messages = [user(text), assistant("of a user")]
        if found is not None and found.user_id != user_id:
            self.refuses(ThreadNotFound, view.messages.append(thread, messages))
        else:
            self.append_as(thread, messages, user=user_id)

    @rule(thread=threads, user_id=st.none() | user_ids, text=texts)
    def append_and_create(self, thread: str, user_id: str | None, text: str) -> None:
        self.append_as(thread, [user(text), assistant("made")], user=user_id, create=NewThread(title=text))
