"""The checker: what is stored, held against what clients asked for and were told.

For each thread and branch: positions are dense from 1; every acknowledged batch is there exactly once, where its writer
was told, contiguous and complete with its parts, calls and results; a refused one is not, and nothing is that nobody
asked for; a batch whose append ended before another began stands before it; every read is a prefix of what is stored
and as long as what had been acknowledged, or read, when it began. Time and memory are linear in what is checked; only
the moments are sorted, and they come nearly in order.
"""

from __future__ import annotations

import heapq
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chatledger import ChatMessage, Ledger
from chatledger.rules import check_messages
from chatledger.storage.history.window import SMALL
from tests.conftest import Database
from tests.faults.batches import batch, links, name_of
from tests.faults.recording import Append, Read, Recording
from tests.storage.raw import query

Kind = Literal["gap", "lost", "twice", "torn", "altered", "stranger", "ghost", "misplaced", "order", "read", "rules"]
"""gap: positions are not dense. lost: acknowledged, not stored. twice: a batch stored more than once. torn: in part, or
not contiguous. altered: a message, part, call or link is not as given. stranger: nobody asked for it. ghost: refused,
and stored. misplaced: acknowledged for another place. order: against the order of time. read: no prefix, or stale.
rules: the library's own `check` finds something.
"""
FAILURES = Path(os.environ.get("CHATLEDGER_FAILURES", ".failures"))


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
    """Messages that stand on the branch that this one was forked from."""


@dataclass(slots=True)
class Figures:
    """What a proof amounts to."""

    acknowledged: int = 0
    faults: int = 0
    unknown: int = 0
    found: Counter[str] = field(default_factory=Counter)

    def add(self, other: Figures) -> None:
        self.acknowledged += other.acknowledged
        self.faults += other.faults
        self.unknown += other.unknown
        self.found += other.found

    @property
    def lost(self) -> int:
        return self.found["lost"]

    @property
    def doubled(self) -> int:
        return self.found["twice"]

    @property
    def disordered(self) -> int:
        return self.found["order"] + self.found["gap"] + self.found["misplaced"]

    @property
    def other(self) -> int:
        return self.found.total() - self.lost - self.doubled - self.disordered


# --- Judging ----------------------------------------------------------------------------------------------------------


def check(recording: Recording, stored: Sequence[Stored]) -> list[Fault]:
    appends: dict[tuple[str, int], list[Append]] = defaultdict(list)
    for append in recording.appends.values():
        appends[append.thread, append.branch].append(append)
    reads: dict[tuple[str, int], list[Read]] = defaultdict(list)
    for read in recording.reads:
        reads[read.thread, read.branch].append(read)
    faults: list[Fault] = []
    for branch in stored:
        place = branch.thread, branch.branch
        faults += _check_branch(branch, appends.pop(place, []), reads.pop(place, []))
    for (thread, number), missing in appends.items():
        faults += [
            Fault("lost", f"{thread}/{number}", f"{one.name}: its branch is gone")
            for one in missing
            if one.outcome == "acknowledged"
        ]
    return faults


def _check_branch(stored: Stored, appends: Sequence[Append], reads: Sequence[Read]) -> list[Fault]:
    place = f"{stored.thread}/{stored.branch}"
    faults = [
        Fault("gap", place, f"seq {message.seq} at position {position}")
        for position, message in enumerate(stored.messages, 1)
        if message.seq != position
    ]
    asked = {append.name: append for append in appends}
    places: dict[str, list[int]] = defaultdict(list)
    for index, name in _batches(stored):
        places[name].append(index + 1)
        if name not in asked:
            faults.append(Fault("stranger", place, f"{name!r} at seq {index + 1}"))
        else:
            faults += _check_batch(stored, index, name, place)
    for append in appends:
        faults += _check_outcome(append, places.get(append.name, []), place)
    faults += _check_order([(asked[name], at[0]) for name, at in places.items() if name in asked], place)
    return faults + _check_reads(stored, appends, reads, place)


def _batches(stored: Stored) -> list[tuple[int, str]]:
    """Where each batch of the branch's own messages begins: at its first message, or where the name changes."""
    found = []
    last = None
    for index in range(stored.shared, len(stored.messages)):
        message = stored.messages[index]
        name = name_of(message)
        if name != last or message.message_id == f"{name}/0":
            found.append((index, name))
        last = name
    return found


# What the ledger fills in; `run_id` too, because the recorder names a run.
_SET = dict.fromkeys(("thread_id", "branch", "seq", "created_at", "run_id", "answers"))


def _check_batch(stored: Stored, index: int, name: str, place: str) -> list[Fault]:
    given = batch(name)
    there = stored.messages[index : index + len(given)]
    if [message.message_id for message in there] != [message.message_id for message in given]:
        return [Fault("torn", place, f"{name} at seq {index + 1}: {[message.message_id for message in there]}")]
    faults = [
        Fault("altered", place, f"{own.message_id} at seq {message.seq}")
        for message, own in zip(there, given, strict=True)
        if {**message.__dict__, **_SET} != {**own.__dict__, **_SET}
    ]
    expected = {index + 1 + at: (index + 1 + call, idx) for at, (call, idx) in links(given).items()}
    answers = {seq: stored.answers[seq] for seq in range(index + 1, index + 1 + len(given)) if seq in stored.answers}
    if answers != expected:
        faults.append(Fault("altered", place, f"{name}: results answer {answers}, not {expected}"))
    return faults


def _check_outcome(append: Append, places: Sequence[int], place: str) -> list[Fault]:
    if len(places) > 1:
        return [Fault("twice", place, f"{append.name} at seqs {list(places)}")]
    if append.outcome == "refused" and places:
        return [Fault("ghost", place, f"{append.name} at seq {places[0]}")]
    if append.outcome != "acknowledged":
        return []
    if not places:
        return [Fault("lost", place, f"{append.name}, acknowledged at seq {append.first}")]
    told = (append.first, append.last)
    there = (places[0], places[0] + len(batch(append.name)) - 1)
    return [] if told == there else [Fault("misplaced", place, f"{append.name} at {there}, acknowledged at {told}")]


def _check_order(appends: Sequence[tuple[Append, int]], place: str) -> list[Fault]:
    """In the order of their places: nobody may have ended before one that stands before them began."""
    faults = []
    latest: Append | None = None
    for append, _ in appends:  # a dict of places keeps the order in which they stand
        if latest is not None and append.ended is not None and append.ended < latest.began:
            faults.append(Fault("order", place, f"{append.name} ended before {latest.name} began, and stands behind"))
        if latest is None or append.began > latest.began:
            latest = append
    return faults


def _check_reads(stored: Stored, appends: Sequence[Append], reads: Sequence[Read], place: str) -> list[Fault]:
    ids = [message.message_id for message in stored.messages]
    faults = []
    # What must be seen from a moment on: the end of each acknowledged batch, and what any reader had seen.
    known = [(one.ended or 0, one.last or 0, "append") for one in appends if one.outcome == "acknowledged"]
    known += [(read.ended, read.version, "read") for read in reads]
    heapq.heapify(known)
    least = (0, 0, "")
    for read in sorted(reads, key=lambda one: one.began):
        while known and known[0][0] < read.began:
            least = max(least, heapq.heappop(known), key=lambda one: one[1])
        if read.version < least[1]:
            faults.append(Fault("read", place, f"version {read.version} after {least[2]} of {least[1]}"))
        if read.ids != ids[read.first - 1 : read.version]:
            faults.append(Fault("read", place, f"seqs {read.first} to {read.version} were not as they stand"))
    return faults


# --- Reading what is stored, and the verdict --------------------------------------------------------------------------


async def read_stored(database: Database, ledger: Ledger, threads: Sequence[str]) -> tuple[list[Stored], list[Fault]]:
    """All branches of these threads as they stand, and what the library's own check finds in them."""
    answers: dict[tuple[str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    links = "SELECT thread_id, branch, seq, call_seq, call_idx FROM tool_results WHERE tenant_id = 'default'"
    for thread, number, seq, call_seq, call_idx in await query(database, links):
        answers[thread, number][seq] = call_seq, call_idx
    stored, faults = [], []
    rows = await query(
        database, "SELECT thread_id, branch, lineage, last_seq FROM branches WHERE tenant_id = 'default'"
    )
    wanted = set(threads)
    for thread, number, lineage, last_seq in sorted(row for row in rows if row[0] in wanted):
        limit = SMALL if last_seq <= SMALL else None  # a short one is read in one statement
        messages = (await ledger.messages.history(thread, branch=number, limit=limit)).messages
        shared = json.loads(lineage)[-1][1] - 1
        stored.append(Stored(thread, messages, answers[thread, number], number, shared))
        faults += _own_check(f"{thread}/{number}", messages)
    return stored, faults


def _own_check(place: str, messages: Sequence[ChatMessage]) -> list[Fault]:
    """What `threads.check` finds; R13 is only reported, and a turn of ours that ends with a result breaks it."""
    return [Fault("rules", place, f"{found}") for found in check_messages(messages) if found.rule != "R13"]


async def verdict(
    database: Database, ledger: Ledger, threads: Sequence[str], recording: Recording, *, seed: object = None
) -> Figures:
    """The figures; where something is wrong, the recording is saved and an AssertionError says what and where."""
    stored, faults = await read_stored(database, ledger, threads)
    return judge(recording, stored, faults, seed=seed)


def judge(
    recording: Recording, stored: Sequence[Stored], also: Sequence[Fault] = (), *, seed: object = None
) -> Figures:
    faults = [*also, *check(recording, stored)]
    figures = Figures(recording.acknowledged, recording.faults, recording.unknown)
    figures.found.update(fault.kind for fault in faults)
    if faults:
        path = FAILURES / f"{seed if seed is not None else random.randrange(2**32)}.jsonl"
        recording.save(path)
        listed = "\n".join(f"  {fault.kind} in {fault.place}: {fault.detail}" for fault in faults[:20])
        raise AssertionError(f"{dict(figures.found)}, seed {seed}, recording in {path}\n{listed}")
    return figures
