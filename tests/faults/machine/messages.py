"""Messages: appended in every way, repeated, and sent again as a whole."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from chatledger import ChatMessage, Newest, RuleViolation, VersionConflict
from chatledger.errors import DraftLive, IdConflict
from tests.conversations import assistant, call, result, user
from tests.faults.machine.base import Base, has_removed, needs, run_ids, texts, threads
from tests.faults.machine.model import ModelThread, Preflight, open_calls


def is_open(found: ModelThread) -> bool:
    return found.is_open


def has_marks(found: ModelThread) -> bool:
    return bool(found.marks)


class MessageRules(Base):
    @rule(thread=threads, text=texts, run=st.none() | run_ids)
    def append_turn(self, thread: str, text: str, run: str | None) -> None:
        self.append_as(thread, [user(text), assistant(f"{text}!")], run_id=run)

    @rule(thread=threads, arguments=st.sampled_from(["{}", '{"a": 1}']), count=st.integers(1, 2))
    def append_call(self, thread: str, arguments: str, count: int) -> None:
        calls = [call(f"call_{number}", arguments=arguments) for number in range(count)]
        self.append_as(thread, [user("?"), assistant(calls=calls)])

    @rule(thread=threads, text=texts)
    def append_a_stray_result(self, thread: str, text: str) -> None:
        self.append_as(thread, [result("call_0", text)])

    @needs(is_open)
    @rule(number=st.integers(0, 1), text=texts)
    def append_result(self, number: int, text: str) -> None:
        self.append_as(self.first(is_open)[0], [result(f"call_{number}", text)])

    @rule(thread=threads)
    def append_if_empty(self, thread: str) -> None:
        self.append_as(thread, [user("at"), assistant("!")], expected=0)

    @rule(thread=threads, key=st.sampled_from(["k1", "k2"]))
    def append_with_a_key(self, thread: str, key: str) -> None:
        """Repeated: the first result again, whatever became of the messages and whatever branch is active."""
        earlier = self.model.keys.get((thread, key))
        messages = [user(key), assistant(f"{key}!")]
        if earlier is None:
            if stored := self.append_as(thread, messages, idempotency_key=key):
                self.model.keys[thread, key] = stored
            return
        again = self.do(self.own.messages.append(thread, messages, idempotency_key=key))
        assert again.replayed
        assert again.messages == self.model.threads[thread].first_result(earlier)

    @rule(thread=threads)
    def repeat_by_ids(self, thread: str) -> None:
        """Ids on the path are found there, inherited or not; ids that are only on another path are a conflict. Each
        form that the message had is a repeat of it.
        """
        found = self.model.threads.get(thread)
        for message in found.all_messages()[-4:] if found else ():
            if found is None or message.state == "partial":
                continue
            for form in [message, *found.forms.get(message.message_id or "", [])][-2:]:
                if form.state == "partial":
                    continue
                repeating = self.own.messages.append(thread, [form])
                if message in found.path:
                    again = self.do(repeating)
                    assert (again.replayed, again.messages) == (True, [message])
                else:
                    self.refuses(IdConflict, repeating)

    @needs(has_removed)
    @rule()
    def append_under_a_free_id(self) -> None:
        """The id of a message that was removed from every branch can be taken again, unless a key made it."""
        thread, found = self.first(has_removed)
        kept = {one.message_id for (of, _), said in self.model.keys.items() if of == thread for one in said}
        free = [id_ for id_ in found.changes if found.now(id_) is None and id_ not in kept]
        if free:
            self.append_as(thread, [user("again", message_id=free[-1]), assistant("!")])

    @rule(thread=threads)
    def mark(self, thread: str) -> None:
        found = self.model.threads.get(thread)
        if found is not None:
            mark = self.do(self.own.messages.history(thread, Newest(1))).mark
            found.marks.append(Preflight(mark, found.active, found.branch.writes))

    @needs(has_marks)
    @rule()
    def append_if_unmoved(self) -> None:
        thread, found = self.first(has_marks)
        mark = found.marks[-1]
        if found.is_current(mark):
            nothing = self.do(self.own.messages.append(thread, [], expected=mark.mark))
            assert (nothing.last_seq, nothing.mark) == (found.end, mark.mark)
        else:
            appending = self.own.messages.append(thread, [user("at"), assistant("!")], expected=mark.mark)
            self.refuses(VersionConflict, appending)

    @rule(thread=threads)
    def close_open_calls(self, thread: str) -> None:
        found = self.of(thread, lambda: self.own.messages.close_open_calls(thread, reason="gone"))
        if found is None:
            return
        closing = self.own.messages.close_open_calls(thread, reason="gone")
        if found.is_live:
            self.refuses(DraftLive, closing)
            return
        waiting = open_calls(found.path)
        stored = self.do(closing)
        assert sorted(one.tool_call_id or "" for one in stored.messages) == waiting
        if waiting:
            found.extend(stored.messages)

    @rule(thread=threads, text=texts)
    def sync(self, thread: str, text: str) -> None:
        found = self.of(thread, lambda: self.own.messages.sync(thread, [user(text)]))
        if found is None or found.is_open:
            return
        more = [user(text), assistant("synced")]
        if found.is_live:
            self.refuses(DraftLive, self.own.messages.sync(thread, [*found.path, *more]))
            return
        stored = self.do(self.own.messages.sync(thread, [*found.path, *more]))
        found.extend(stored.messages)
        assert self.do(self.own.messages.sync(thread, found.path)).replayed

    @rule(thread=threads, same=st.integers(0, 5), goes_on=st.booleans())
    def sync_another_history(self, thread: str, same: int, goes_on: bool) -> None:
        """It begins as the stored one does. Then it goes on in another way, or ends."""
        found = self.model.threads.get(thread)
        if found is None or same > len(found.path) or found.is_live:
            return
        more = [user(self.new_text()), assistant("synced")] if goes_on else []
        sent = [*found.path[:same], *more]
        cut = same
        while cut < len(found.path) and found.path[cut].state == "synthetic":  # the sender need not know these
            cut += 1
        shared = found.path[:cut]
        syncing = self.own.messages.sync(thread, sent, on_difference="branch")
        if cut == len(found.path) and not more:
            assert self.do(syncing).replayed
            return
        if open_calls(shared):
            self.refuses(RuleViolation, syncing)
            return
        stored = self.do(syncing)
        at = shared[-1].seq or 0 if shared else 0
        if cut < len(found.path):
            found.begin_branch(shared, at)
        if more:
            found.extend(stored.messages)
            self.appended[0] += len(more)
        assert (stored.last_seq, [one.content for one in stored.messages]) == (found.end, [one.content for one in more])
        again = self.do(self.own.messages.sync(thread, sent, on_difference="branch"))
        assert again.replayed

    @rule(first=threads, second=threads, text=texts, commit=st.booleans())
    def transaction(self, first: str, second: str, text: str, commit: bool) -> None:
        """Two appends and a value with one commit, or with none."""
        found = [self.model.threads.get(thread) for thread in (first, second)]
        if any(one is None or one.is_open or one.is_live for one in found):
            return

        async def all_of_it() -> list[list[ChatMessage]]:
            stored = []
            async with self.own.begin() as tx:
                for thread in (first, second):
                    appended = await tx.messages.append(thread, [user(text), assistant("both")], kv={"tx": text})
                    stored.append(appended.messages)
                if not commit:
                    raise KeyError
            return stored

        if not commit:
            self.refuses(KeyError, all_of_it())
            return
        for one, messages in zip(found, self.do(all_of_it()), strict=True):
            assert one is not None
            one.extend(messages)
        for thread in (first, second)[: 1 + (first != second)]:
            if first == second:
                before = self.model.version(("thread", thread), "tx")
                if before:
                    self.model.put(("thread", thread), "tx", text, before + 1)
            self.take_value(("thread", thread), "tx", text)
