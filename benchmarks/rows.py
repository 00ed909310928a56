"""A turn as the rows of our tables, for the bare contenders and for filling databases.

Only the columns that such a turn has values for are written: a store written by hand for this shape would do the same,
and the baseline is meant to be hard to reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from benchmarks.turns import BareMessage, Turn, turns
from chatledger.ids import new_id, new_stamp
from chatledger.storage.schema.text import to_microseconds

TENANT = "default"
BRANCH = 0
KEY = ("tenant_id", "thread_id", "branch")
COLUMNS = {
    "messages": (
        "seq", "message_id", "role", "content_form", "text", "call_count", "tool_call_id", "state", "created_at",
    ),
    "tool_calls": ("seq", "idx", "call_id", "name", "arguments", "arguments_form"),
    "tool_results": ("seq", "call_branch", "call_seq", "call_idx"),
}  # fmt: skip
"""What a turn writes, after the key; in the order in which foreign keys allow it."""
OF_A_RUN = {**COLUMNS, "messages": (*COLUMNS["messages"], "run_id")}
"""The same for a turn with a run of its own, whose row is written before."""
RUN_COLUMNS = ("tenant_id", "thread_id", "run_id", "status", "started_at")

LINEAGE = "[[0,1,null]]"


@dataclass(slots=True)
class Rows:
    """By table, without the key."""

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    tool_calls: list[tuple[Any, ...]] = field(default_factory=list)
    tool_results: list[tuple[Any, ...]] = field(default_factory=list)

    def tables(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        for name in COLUMNS:
            yield name, getattr(self, name)


def turn_rows(turn: Turn, seq: int, created_at: Any, run: str | None = None) -> Rows:
    """The rows of a turn whose first message stands at `seq`. A message without an id gets one, as chatledger mints it.
    With `run`, the columns are OF_A_RUN.
    """
    of_run = () if run is None else (run,)
    rows = Rows()
    places: dict[str | None, tuple[int, int]] = {}
    for message in turn.bare:
        rows.messages.append(_message_row(message, seq, created_at) + of_run)
        for idx, call in enumerate(message.calls):
            places[call.id] = (seq, idx)
            rows.tool_calls.append((seq, idx, call.id, call.name, call.arguments, "str"))
        if message.tool_call_id is not None:
            rows.tool_results.append((seq, BRANCH, *places[message.tool_call_id]))
        seq += 1
    return rows


def _message_row(message: BareMessage, seq: int, created_at: Any) -> tuple[Any, ...]:
    form = None if message.text is None else "str"
    calls = len(message.calls) or None
    role, text, answered = message.role, message.text, message.tool_call_id
    return seq, message.message_id or new_id(), role, form, text, calls, answered, "complete", created_at


def thread_rows(thread: str, messages: int, now: datetime, *, sqlite: bool = False) -> Iterator[tuple[str, list[Any]]]:
    """(table, whole rows) of a thread that already holds that many messages, a turn at a time."""
    moment = to_microseconds(now) if sqlite else now
    yield "threads", [(TENANT, thread, BRANCH, moment, moment)]
    role = "assistant" if messages else None
    yield "branches", [(TENANT, thread, BRANCH, LINEAGE, messages, new_stamp(), role, moment)]
    stock = turns()
    for number, seq in enumerate(range(1, messages + 1, len(stock[0].bare))):
        for table, rows in turn_rows(stock[number % len(stock)], seq, moment).tables():
            yield table, [(TENANT, thread, BRANCH, *row) for row in rows]


FILLED_COLUMNS = {
    "threads": ("tenant_id", "thread_id", "active_branch", "created_at", "active_at"),
    "branches": (*KEY, "lineage", "last_seq", "stamp", "last_role", "created_at"),
    **{table: (*KEY, *columns) for table, columns in COLUMNS.items()},
}
"""The columns of `thread_rows`."""
