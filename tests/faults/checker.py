"""The checker compares the stored rows with the requests of clients and the answers that they got.

For each thread and branch: each position holds a message, or a change that is recorded, or the message that a change
removed, and nothing twice; every acknowledged batch is there exactly once, where its writer was told, contiguous and
complete with its parts, calls and results; a refused one is not, and nothing is that nobody asked for; a batch whose
append ended before another began stands before it; every read is the branch as it stood at its version, and not older
than what had been acknowledged, or read, when it began. `changes_check.py` holds pops and revisions against what was
asked, `values_check.py` the values that came with batches. Time and memory are linear in what is checked; only the
moments and the versions are sorted, and they come nearly in order.
"""

from __future__ import annotations

import heapq
import os
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chatledger import Ledger
from tests.conftest import Database
from tests.faults.batches import batch, ids_of, is_changing, links
from tests.faults.changes_check import check_changes
from tests.faults.growth import Growth
from tests.faults.positions import Positions, read_positions
from tests.faults.recording import Append, Change, Read, Recording
from tests.faults.stored import Fault, Stored, read_stored
from tests.faults.values_check import check_values

FAILURES = Path(os.environ.get("CHATLEDGER_FAILURES", ".failures"))


@dataclass(slots=True)
class Figures:
    """The figures of a proof."""

    acknowledged: int = 0
    faults: int = 0
    unknown: int = 0
    found: Counter[str] = field(default_factory=Counter)
    growths: list[Growth] = field(default_factory=list)
    """What the processes that appended over many threads held."""

    def add(self, other: Figures) -> None:
        self.acknowledged += other.acknowledged
        self.faults += other.faults
        self.unknown += other.unknown
        self.found += other.found
        self.growths += other.growths

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
    changes: dict[tuple[str, int], list[Change]] = defaultdict(list)
    for change in recording.changes.values():
        changes[change.thread, change.branch].append(change)
    faults: list[Fault] = []
    threads: dict[str, list[Positions]] = defaultdict(list)
    for branch in stored:
        place = branch.thread, branch.branch
        positions = read_positions(branch, appends[place])
        threads[branch.thread].append(positions)
        faults += positions.faults
        faults += _check_branch(positions, appends.pop(place), reads[place], changes[place])
        faults += check_changes(positions, changes[place])
    for thread, branches in threads.items():
        faults += check_values(thread, branches, recording)
    for (thread, number), missing in appends.items():
        faults += [
            Fault("lost", f"{thread}/{number}", f"{one.name}: its branch is gone")
            for one in missing
            if one.outcome == "acknowledged"
        ]
    return faults


def _check_branch(
    positions: Positions, appends: Sequence[Append], reads: Sequence[Read], changes: Sequence[Change]
) -> list[Fault]:
    place, asked = positions.stored.place, {append.name: append for append in appends}
    faults: list[Fault] = []
    for name, seqs in positions.batches.items():
        for seq in seqs:
            if name not in asked:
                faults.append(Fault("stranger", place, f"{name!r} at seq {seq}"))
            else:
                faults += _check_batch(positions, seq, name)
    for append in appends:
        faults += _check_outcome(append, positions.batches.get(append.name, []), place)
    stands = sorted((seqs[0], name) for name, seqs in positions.batches.items() if name in asked)
    faults += _check_order([(asked[name], seq) for seq, name in stands], place)
    return faults + _check_reads(positions, appends, reads, changes)


# The fields that the ledger fills in; `run_id` too, because the recorder names a run.
_SET = dict.fromkeys(("thread_id", "branch", "seq", "created_at", "run_id", "answers", "message_id"))


def _check_batch(positions: Positions, first: int, name: str) -> list[Fault]:
    stored, place = positions.stored, positions.stored.place
    given = batch(name, changing=is_changing(stored.thread))
    seqs = range(first, first + len(given))
    there = [positions.messages[seq] for seq in seqs if seq in positions.messages]
    if [message.message_id for message in there] != ids_of(name, stored.thread):
        return [Fault("torn", place, f"{name} at seq {first}: {[message.message_id for message in there]}")]
    originals = [positions.forms[message.message_id][0] for message in there]
    faults = [
        Fault("altered", place, f"{message.message_id} at seq {message.seq}")
        for message, own in zip(originals, given, strict=True)
        if {**message.__dict__, **_SET} != {**own.__dict__, **_SET}
    ]
    expected = {first + at: (first + call, idx) for at, (call, idx) in links(given).items()}
    answers = {seq: stored.answers[seq] for seq in seqs if seq in stored.answers}
    if answers != expected:
        faults.append(Fault("altered", place, f"{name}: results answer {answers}, not {expected}"))
    told = {one.seq: (one.answers.seq, one.answers.index) for one in there if one.answers is not None}
    if told != expected:
        faults.append(Fault("altered", place, f"{name}: its results say that they answer {told}, not {expected}"))
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
    there = (places[0], places[0] + len(ids_of(append.name, append.thread)) - 1)
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


def _check_reads(
    positions: Positions, appends: Sequence[Append], reads: Sequence[Read], changes: Sequence[Change]
) -> list[Fault]:
    place = positions.stored.place
    faults = []
    # The positions that every later read must include: the end of each acknowledged write, and what any reader had
    # seen.
    known = [(one.ended or 0, one.last or 0, "append") for one in appends if one.outcome == "acknowledged"]
    pops = [one for one in changes if one.kind == "popped" and one.outcome == "acknowledged"]
    known += [(pop.ended or 0, positions.taken.get(pop.message_id, 0), "pop") for pop in pops]
    known += [(read.ended, read.version, "read") for read in reads]
    heapq.heapify(known)
    least = (0, 0, "")
    for read in sorted(reads, key=lambda one: one.began):
        while known and known[0][0] < read.began:
            least = max(least, heapq.heappop(known), key=lambda one: one[1])
        if read.version < least[1]:
            faults.append(Fault("read", place, f"version {read.version} after {least[2]} of {least[1]}"))
    states = positions.states()
    version, standing = next(states)
    calls = positions.calls()
    for read in sorted(reads, key=lambda one: one.version):
        while version < read.version and (state := next(states, None)) is not None:
            version, standing = state
        seen = standing if read.whole or not read.ids else standing[len(standing) - len(read.ids) :]
        if version != read.version or read.ids != seen:
            faults.append(Fault("read", place, f"version {read.version} was not as the branch stood"))
        answers = {id_: list(calls[id_]) for id_ in read.ids if id_ in calls}
        if read.answers != answers:
            faults.append(Fault("read", place, f"version {read.version}: results answer {read.answers}, not {answers}"))
    return faults


# --- The verdict ------------------------------------------------------------------------------------------------------


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
