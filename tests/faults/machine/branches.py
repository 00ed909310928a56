"""Branches: forks, edits after an earlier message, alternatives, and which branch is active."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from chatledger import ChatMessage, RuleViolation
from chatledger.errors import BranchNotFound, InvalidCursor, MessageNotFound
from chatledger.repositories import scope_of
from chatledger.storage.repositories.alternatives import alternatives_of
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, user
from tests.faults.machine.base import Base, texts, threads
from tests.faults.machine.model import ModelBranch, ModelThread, open_calls, place_of
from tests.places import at as place_at


def named(message: ChatMessage, by_id: bool) -> ChatMessage | str:
    """The message as a call takes it: by its id, or by its place."""
    return message.message_id or "" if by_id else place_at(message.seq or 0, message.branch or 0)


class BranchRules(Base):
    @rule(thread=threads, at=st.integers(0, 8), activate=st.booleans())
    def fork(self, thread: str, at: int, activate: bool) -> None:
        found = self.of(thread, lambda: fork_at(scope_of(self.own), thread, at, activate=activate))
        if found is None:
            return
        forking = fork_at(scope_of(self.own), thread, at, activate=activate)
        shared = [one for one in found.path if (one.seq or 0) <= at]
        if at > found.end:
            self.refuses(InvalidCursor, forking)
        elif open_calls(shared) or ModelBranch(shared).is_live:
            self.refuses(RuleViolation, forking)
        else:
            branch = self.do(forking)
            assert (branch.branch, branch.last_seq, branch.active) == (len(found.branches), at, activate)
            found.begin_branch(shared, at, activate=activate)

    @rule(thread=threads, back=st.integers(0, 3), text=texts, by_id=st.booleans(), beside=st.booleans())
    def edit(self, thread: str, back: int, text: str, by_id: bool, beside: bool) -> None:
        """Go back, and on in another way. At the end of the branch it is a plain append."""
        found = self.model.threads.get(thread)
        if found is None or back > len(found.path):
            self.edit_nowhere(thread, back)
            return
        shared = found.path[: len(found.path) - back]
        after = shared[-1].seq or 0 if shared else 0
        messages = [user(text), assistant("edited")]
        if not back:
            if shared:
                self.append_as(thread, messages, reply_to=named(shared[-1], by_id))
            return
        edited = found.path[len(shared)]
        place = {"alternative_to": named(edited, by_id)}
        if shared and not beside:
            place = {"reply_to": named(shared[-1], by_id)}
        editing = self.own.messages.append(thread, messages, **place)  # type: ignore[arg-type]
        if open_calls(shared):
            self.refuses(RuleViolation, editing)
        else:
            stored = self.do(editing)
            assert (stored.messages[0].seq, stored.last_seq) == (after + 1, after + 2)
            self.appended[0] += 2
            found.begin_branch(shared, after)
            found.extend(stored.messages)
            self.edits.append((thread, stored.messages, place))

    @rule(thread=threads, beyond=st.integers(1, 3))
    def edit_nowhere(self, thread: str, beyond: int) -> None:
        """After a position beyond the end, or one that holds no message."""
        found = self.of(thread, lambda: self.own.messages.append(thread, [user("?")], reply_to=place_at(beyond)))
        if found is None:
            return
        held = {one.seq for one in found.path}
        empty = [seq for seq in range(1, found.end) if seq not in held]
        for seq in (found.end + beyond, *empty[-1:]):
            self.refuses(
                MessageNotFound, self.own.messages.append(thread, [user("?")], reply_to=place_at(seq, found.active))
            )

    @precondition(lambda self: bool(self.edits))
    @rule()
    def repeat_an_edit(self) -> None:
        """The first result, whatever is active by now, and no other branch."""
        for thread, messages, place in self.edits[-2:]:
            found = self.model.threads.get(thread)
            now = [found.now(one.message_id) for one in messages] if found else []
            if found is None or now[0] is None or now[1] is None or place_moved(found, messages[0].branch or 0, now[0]):
                continue
            if any(one and place_of(one) != place_of(first) for one, first in zip(now, messages, strict=True)):
                continue  # the message was removed, and another one took its id
            again = self.do(self.own.messages.append(thread, [one for one in now if one], **place))
            assert (again.replayed, again.messages) == (True, now)

    @rule(thread=threads, number=st.integers(0, 5))
    def alternatives(self, thread: str, number: int) -> None:
        """The messages that follow the same one before them, on any branch."""
        found = self.model.threads.get(thread)
        if found is None or number >= len(found.path):
            return
        current = found.path[number]
        before = [one.message_id for one in found.path[:number]][-1:]
        showing: dict[str | None, list[int]] = {}
        for branch, one in enumerate(found.branches):
            ids = [message.message_id for message in one.path]
            follows = ids.index(before[0]) + 1 if before and before[0] in ids else 0
            if (follows or not before) and follows < len(ids):
                showing.setdefault(ids[follows], []).append(branch)
        listed = self.do(alternatives_of(scope_of(self.own), thread, current.seq or 0))
        assert {one.message.message_id for one in listed} == showing.keys()
        assert [one.message for one in listed if one.current] == [current]
        assert all(one.branch in showing[one.message.message_id] for one in listed)

    @rule(thread=threads, number=st.integers(0, 3))
    def activate(self, thread: str, number: int) -> None:
        found = self.of(thread, lambda: self.own.branches.activate(thread, number))
        if found is None:
            return
        activating = self.own.branches.activate(thread, number)
        if number >= len(found.branches):
            self.refuses(BranchNotFound, activating)
        else:
            assert self.do(activating).last_seq == found.branches[number].end
            found.branch.writes += 1
            found.active = number


def place_moved(found: ModelThread, stored_on: int, first: object) -> bool:
    """Whether the messages left the branch that stores them, and only another one still has them."""
    return first not in found.branches[stored_on].path and first not in found.path
