"""The stored rows: branches with all their records; and the faults that may be found there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chatledger import ChatMessage, Ledger, Oldest
from chatledger.models import Revision
from chatledger.repositories.history import with_draft
from chatledger.rules import check_messages
from chatledger.storage.history.window_request import SMALL
from tests.conftest import Database
from tests.storage.raw import query

Kind = Literal[
    "gap",
    "lost",
    "twice",
    "torn",
    "altered",
    "stranger",
    "ghost",
    "misplaced",
    "order",
    "read",
    "rules",
    "value",
    "change",
]
"""gap: a position holds nothing that is recorded, or two things. lost: acknowledged, not stored. twice: a batch or a
change stored more than once. torn: in part, or not contiguous. altered: a message, part, call or link is not as given.
stranger: nobody asked for it. ghost: refused, and stored. misplaced: acknowledged for another place. order: against the
order of time. read: not as the branch stood, or stale. rules: the library's own `check` finds something. value: a value
without its batch, a batch without its value, or a version out of order. change: a message was not the one to pop, or
what was recorded of it is not what it was.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind
    place: str
    detail: str


@dataclass(slots=True)
class Stored:
    """A branch as it stands: its messages from the first, and by seq which call each result answers (seq, idx)."""

    thread: str
    messages: Sequence[ChatMessage]
    answers: dict[int, tuple[int, int]]
    branch: int = 0
    shared: int = 0
    """The last position that is of the branch that this one was forked from."""
    version: int = 0
    changes: Sequence[Revision] = ()
    """In the order of the positions that they took."""
    values: dict[str, tuple[object, int]] = field(default_factory=dict)
    """The values of the thread with their versions: each of its branches has the same."""

    @property
    def place(self) -> str:
        return f"{self.thread}/{self.branch}"


async def read_stored(database: Database, ledger: Ledger, threads: Sequence[str]) -> tuple[list[Stored], list[Fault]]:
    """All branches of these threads as they stand, and what the library's own check finds in them."""
    answers: dict[tuple[str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    links = "SELECT thread_id, branch, seq, call_seq, call_idx FROM tool_results WHERE tenant_id = 'default'"
    for thread, number, seq, call_seq, call_idx in await query(database, links):
        answers[thread, number][seq] = call_seq, call_idx
    wanted = set(threads)
    changes = await _read_changes(database, ledger, wanted)
    values = await _read_values(database)
    stored, faults = [], []
    rows = await query(
        database, "SELECT thread_id, branch, lineage, last_seq FROM branches WHERE tenant_id = 'default'"
    )
    for thread, number, lineage, last_seq in sorted(row for row in rows if row[0] in wanted):
        limit = SMALL if last_seq <= SMALL else None  # a short one is read in one statement
        window = None if limit is None else Oldest(limit)
        messages = with_draft(await ledger.messages.history(thread, window, branch=number))
        shared = min(first for on, first, _ in json.loads(lineage) if on == number) - 1
        branch = Stored(thread, messages, answers[thread, number], number, shared, last_seq)
        branch.changes, branch.values = changes[thread, number], values[thread]
        stored.append(branch)
        faults += _own_check(branch.place, messages, _empty(changes, thread))
    return stored, faults


async def _read_changes(database: Database, ledger: Ledger, threads: set[str]) -> dict[tuple[str, int], list[Revision]]:
    """By thread and branch, through the ledger's own call."""
    found: dict[tuple[str, int], list[Revision]] = defaultdict(list)
    changed = "SELECT DISTINCT thread_id, message_id FROM revisions WHERE tenant_id = 'default'"
    for thread, message_id in await query(database, changed):
        if thread in threads:
            for change in await ledger.messages.revisions(thread, message_id):
                found[thread, change.branch].append(change)
    for changes in found.values():
        changes.sort(key=lambda change: change.seq)
    return found


async def _read_values(database: Database) -> dict[str, dict[str, tuple[object, int]]]:
    """By thread and key."""
    found: dict[str, dict[str, tuple[object, int]]] = defaultdict(dict)
    of_threads = "SELECT scope_id, key, value, version FROM kv WHERE tenant_id = 'default' AND kind = 'thread'"
    for thread, key, value, version in await query(database, of_threads):
        found[thread][key] = json.loads(value), version
    return found


def _empty(changes: Mapping[tuple[str, int], Sequence[Revision]], thread: str) -> set[int]:
    """The positions of which the records of the thread say that they hold no message."""
    own = [change for (of, _), said in changes.items() if of == thread for change in said]
    removed = [change.message for change in own if change.kind != "revised"]
    return {*(change.seq for change in own), *(message.seq or 0 for message in removed if message is not None)}


def _own_check(place: str, messages: Sequence[ChatMessage], empty: set[int]) -> list[Fault]:
    """What `threads.check` finds; R13 is only reported, and a turn of ours that ends with a result breaks it."""
    findings = check_messages(messages, empty)
    return [Fault("rules", place, f"{found}") for found in findings if found.rule != "R13"]
