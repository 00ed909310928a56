"""Runs and feedback."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from chatledger import Feedback
from chatledger.errors import RunConflict, RunNotFound
from tests.faults.machine.base import Base, run_ids, threads


class RunRules(Base):
    @rule(thread=threads, run=run_ids)
    def start(self, thread: str, run: str) -> None:
        if self.of(thread, lambda: self.own.runs.start(thread, run_id=run)) is None:
            return
        starting = self.own.runs.start(thread, run_id=run)
        if self.model.runs.get(run, (thread, ""))[0] != thread:
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
    def score(self, run: str, score: int) -> None:
        recording = self.own.feedback.record(Feedback(run_id=run, key="stars", score=score))
        if run not in self.model.runs:
            self.refuses(RunNotFound, recording)
            return
        self.do(recording)
        self.model.scores.append((run, "stars", score))
