"""Changes of stored messages: revise, redact, retract, pop and rewind, and what is recorded of them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from chatledger import ChatMessage, RuleViolation, VersionConflict
from chatledger.errors import BranchNotFound, DraftLive, InvalidCursor, MessageNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from tests.conversations import user
from tests.faults.machine.base import Base, has_removed, needs, texts, threads
from tests.faults.machine.model import ModelThread, place_of, without_words

any_message = st.integers(0, 9)
"""Which of the stored messages, by its place among them."""


def choose(found: ModelThread, number: int) -> ChatMessage | None:
    messages = found.all_messages()
    return messages[number % len(messages)] if messages else None


class ChangeRules(Base):
    def assert_changes(self, thread: str, id_: str | None) -> None:
        """The record of a message is as the model has it."""
        kept = self.do(self.own.messages.revisions(thread, id_ or ""))
        expected = self.model.threads[thread].changes.get(id_ or "", [])
        told = [(one.kind, one.message, one.branch, one.seq) for one in kept]
        assert told == [(one.kind, one.message, one.branch, one.seq) for one in expected]

    @rule(thread=threads, number=any_message, text=texts)
    def revise(self, thread: str, number: int, text: str) -> None:
        """Every branch that shares the message has the new words; only the one that stores it gets a position."""
        found = self.of(thread, lambda: self.own.messages.revise(thread, "m", user(text)))
        old = choose(found, number) if found is not None else None
        if found is None or old is None:
            return
        new = old.model_copy(update={"content": text})
        revising = self.own.messages.revise(thread, old.message_id or "", new)
        if text != old.content and found.branches[old.branch or 0].is_live:
            self.refuses(DraftLive, revising)
            return
        if text != old.content:  # they are not redacted any more
            new = new.model_copy(update={"violations": [one for one in new.violations if one.rule != "R11"]})
        assert self.do(revising) == new
        if text != old.content:
            found.revise(old, new)
        self.assert_changes(thread, old.message_id)

    @rule(thread=threads, number=any_message)
    def redact(self, thread: str, number: int) -> None:
        found = self.of(thread, lambda: self.own.messages.erase(thread, "m"))
        old = choose(found, number) if found is not None else None
        if found is None or old is None or old.state == "partial":
            return
        redacted = self.do(self.own.messages.erase(thread, old.message_id or ""))
        assert redacted.model_copy(update={"violations": old.violations}) == without_words(old)
        assert [one.rule for one in redacted.violations] == ["R11"]
        found.redact(redacted)
        self.assert_changes(thread, old.message_id)

    @needs(has_removed)
    @rule()
    def redact_what_left(self) -> None:
        """By the message that the change has: its id may be another's by now."""
        thread, found = self.first(has_removed)
        left = [one for said in found.changes.values() for one in said if one.kind != "revised"]
        message = left[-1].message
        assert message is not None
        old = found.now(message.message_id)
        if old is None or place_of(old) != place_of(message):  # else another branch still has it
            old = message
        if old.state == "partial":
            return
        redacted = self.do(self.own.messages.erase(thread, message))
        assert redacted.model_copy(update={"violations": old.violations}) == without_words(old)
        if found.now(message.message_id) not in (None, old):  # somebody took the id again
            for change in found.changes[message.message_id or ""]:
                if change.place == place_of(message) and change.message is not None:
                    change.message = None if change.kind == "revised" else redacted
        else:
            found.redact(redacted)
        self.assert_changes(thread, message.message_id)

    @rule(thread=threads, number=any_message)
    def retract(self, thread: str, number: int) -> None:
        """From every branch that has it."""
        found = self.of(thread, lambda: self.own.messages.remove(thread, "m"))
        message = choose(found, number) if found is not None else None
        if found is None or message is None:
            return
        retracting = self.own.messages.remove(thread, message.message_id or "")
        if any(found.branches[holder].is_live for holder in found.holders(message.message_id)):
            self.refuses(DraftLive, retracting)
        elif found.is_half_of_a_pair(message):
            self.refuses(RuleViolation, retracting)
        else:
            assert self.do(retracting) == message
            found.retract(message)
            self.refuses(MessageNotFound, self.own.messages.get(thread, message.message_id or ""))
            self.assert_changes(thread, message.message_id)

    @rule(thread=threads, number=st.none() | st.integers(0, 2), marked=st.booleans())
    def pop(self, thread: str, number: int | None, marked: bool) -> None:
        """The newest message of a branch. Another branch that shares it keeps it."""
        found = self.of(thread, lambda: self.own.messages.pop(thread))
        if found is None:
            return
        mark = found.marks[-1] if marked and number is None and found.marks else None
        popping = self.own.messages.pop(thread, branch=number, expected=None if mark is None else mark.mark)
        if number is not None and number >= len(found.branches):
            self.refuses(BranchNotFound, popping)
            return
        number = found.active if number is None else number
        if mark is not None and not found.is_current(mark):
            self.refuses(VersionConflict, popping)
        elif found.branches[number].is_live:
            self.refuses(DraftLive, popping)
        else:
            last = found.branches[number].path[-1:]
            found.rewind(number, last[0].seq - 1 if last and last[0].seq else 0)
            assert self.do(popping) == (last[0] if last else None)
            for message in last:
                self.assert_changes(thread, message.message_id)

    @rule(thread=threads, back=st.integers(-1, 6))
    def rewind(self, thread: str, back: int) -> None:
        found = self.of(thread, lambda: rewind_to(scope_of(self.own), thread, 0))
        if found is None:
            return
        to = max(0, found.end - back)
        rewinding = rewind_to(scope_of(self.own), thread, to)
        if found.is_live:
            self.refuses(DraftLive, rewinding)
        elif to > found.end:
            self.refuses(InvalidCursor, rewinding)
        else:
            removed = found.rewind(found.active, to)
            assert self.do(rewinding) == removed
            for message in removed[:1]:
                self.assert_changes(thread, message.message_id)
