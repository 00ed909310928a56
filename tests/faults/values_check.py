"""The values of a thread, held against the batches that they came with.

A batch is stored with all its values or not at all. The value under LAST names the batch that was stored last of those
with values, and its version grew by one with each of them, for every reader.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tests.faults.batches import LAST, values
from tests.faults.positions import Positions
from tests.faults.recording import Recording
from tests.faults.stored import Fault


def check_values(thread: str, branches: Sequence[Positions], recording: Recording) -> list[Fault]:
    stored = branches[0].stored.values
    in_order = [[name for name in branch.batches if values(name)] for branch in branches]
    expected = {key: name for names in in_order for name in names for key in values(name) if key != LAST}
    own = {key: value for key, (value, _) in stored.items() if key != LAST}
    faults = [Fault("value", thread, f"{key!r} is not stored with its batch") for key in expected.keys() - own.keys()]
    faults += [Fault("value", thread, f"{key!r} is stored without its batch") for key in own.keys() - expected.keys()]
    faults += [
        Fault("value", thread, f"{key!r} is {own[key]!r}") for key in own.keys() & expected if own[key] != expected[key]
    ]
    last, version = stored.get(LAST, (None, 0))
    newest = {names[-1] for names in in_order if names}
    if last not in newest if newest else last is not None:
        faults.append(Fault("value", thread, f"{LAST!r} is {last!r}, which is not the batch stored last"))
    if len(in_order) == 1:
        faults += _check_versions(thread, in_order[0], version, recording)
    return faults


def _check_versions(thread: str, names: Sequence[str], version: int, recording: Recording) -> list[Fault]:
    """`names`: the batches with values in the order in which they are stored. `version`: that of the last one."""
    versions = {name: version - behind for behind, name in enumerate(reversed(names))}
    reads = [read for read in recording.value_reads if read.thread == thread]
    faults = [
        Fault("value", thread, f"{read.name!r} was read with version {read.version}, not {versions.get(read.name)}")
        for read in reads
        if versions.get(read.name) != read.version
    ]
    # The versions that every later read must include, as for messages.
    appends = [append for name in names if (append := recording.appends.get(name)) is not None]
    known = [(one.ended or 0, versions[one.name]) for one in appends if one.outcome == "acknowledged"]
    known += [(read.ended, read.version) for read in reads]
    heapq.heapify(known)
    least = 0
    for read in sorted(reads, key=lambda one: one.began):
        while known and known[0][0] < read.began:
            least = max(least, heapq.heappop(known)[1])
        if read.version < least:
            faults.append(Fault("value", thread, f"version {read.version} was read after {least}"))
    return faults
