"""Drafts whose writer stops: completed by somebody, or interrupted."""

from __future__ import annotations

from hypothesis.stateful import rule

from chatledger import Pace
from chatledger.errors import DraftLive
from tests.conversations import assistant, user
from tests.faults.machine.base import Base, needs, texts, threads
from tests.faults.machine.model import ModelThread


def is_live(found: ModelThread) -> bool:
    return found.is_live


class DraftRules(Base):
    @rule(thread=threads)
    def begin_a_draft(self, thread: str) -> None:
        """Its writer stops, and holds its lease for longer than the test runs."""
        draft = self.own.messages.stream(thread, pace=Pace(interval=3_600, lease=7_200))

        async def enter() -> None:
            await draft.__aenter__()
            await draft._stop()

        found = self.of(thread, enter)
        if found is None:
            return
        if found.is_live:
            self.refuses(DraftLive, enter())
        elif not found.is_open:
            self.do(enter())
            found.extend([draft.message])
            self.appended[0] += 1

    @needs(is_live)
    @rule(text=texts)
    def complete_the_draft(self, text: str) -> None:
        thread, found = self.first(is_live)
        whole = found.path[-1].model_copy(update={"content": text, "state": "complete"})
        found.path[-1:] = self.do(self.own.messages.append(thread, [whole])).messages
        found.branch.writes += 1

    @needs(is_live)
    @rule(text=texts)
    def interrupt_the_draft(self, text: str) -> None:
        thread, found = self.first(is_live)
        more = [user(text), assistant("at once")]
        stored = self.do(self.own.messages.append(thread, more, on_open_calls="interrupt"))
        found.path[-1:] = [found.path[-1].model_copy(update={"state": "interrupted"})]
        found.extend(stored.messages)
