"""The positions of a branch: what each of them holds or held, and how the branch stood at each version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chatledger import ChatMessage
from tests.faults.batches import batch, ids_of, is_changing, links
from tests.faults.recording import Append
from tests.faults.stored import Fault, Stored


@dataclass(slots=True)
class Positions:
    stored: Stored
    faults: list[Fault] = field(default_factory=list)
    messages: dict[int, ChatMessage] = field(default_factory=dict)
    """By seq in order: the messages that stand there, and those that did."""
    removed: dict[int, int] = field(default_factory=dict)
    """The seq of the message that left, by the position of the pop."""
    taken: dict[str | None, int] = field(default_factory=dict)
    """The position of the pop, by the id of the message that left."""
    forms: dict[str | None, list[ChatMessage]] = field(default_factory=dict)
    """The forms that a message had, by its id, from the first to the last."""
    batches: dict[str, list[int]] = field(default_factory=dict)
    """The positions at which each batch of the branch's own messages begins, by its name and in order."""

    def states(self) -> Iterator[tuple[int, list[str | None]]]:
        """Each version of the branch, and the ids that stood on it then. It is one list, which goes on changing."""
        shared = self.stored.shared
        standing = [message.message_id for seq, message in self.messages.items() if seq <= shared]
        yield shared, standing
        for version in range(shared + 1, self.stored.version + 1):
            if version in self.removed:
                left = self.messages[self.removed[version]].message_id
                standing[:] = [id_ for id_ in standing if id_ != left] if standing[-1:] != [left] else standing[:-1]
            elif version in self.messages:
                standing.append(self.messages[version].message_id)
            yield version, standing

    def calls(self) -> dict[str | None, tuple[int, int]]:
        """The call that each result of the batches answers, as (seq, index), by the id of the result."""
        found: dict[str | None, tuple[int, int]] = {}
        for name, seqs in self.batches.items():
            given, ids = batch(name, changing=is_changing(self.stored.thread)), ids_of(name, self.stored.thread)
            found |= {ids[at]: (seqs[0] + call, idx) for at, (call, idx) in links(given).items()}
        return found


def read_positions(stored: Stored, appends: Sequence[Append]) -> Positions:
    """The faults are those of positions that hold nothing that is recorded, or two things."""
    found = Positions(stored)
    held: dict[int, str] = {}

    def hold(seq: int, said: str) -> None:
        if seq in held:
            found.faults.append(Fault("gap", stored.place, f"seq {seq} holds {said} and {held[seq]}"))
        held.setdefault(seq, said)

    last = 0
    forms: dict[str | None, list[ChatMessage]] = defaultdict(list)
    for message in stored.messages:
        seq = message.seq or 0
        if seq <= last:
            found.faults.append(Fault("gap", stored.place, f"seq {seq} stands behind seq {last}"))
        last = seq
        hold(seq, f"message {message.message_id}")
        found.messages[seq] = message
    for change in stored.changes:
        hold(change.seq, f"a message {change.kind}")
        kept = change.message
        if kept is None:
            found.faults.append(Fault("change", stored.place, f"seq {change.seq}: nothing is kept of the message"))
            continue
        forms[kept.message_id].append(kept)
        if change.kind != "revised":
            hold(kept.seq or 0, f"message {kept.message_id}, which left")
            found.messages.setdefault(kept.seq or 0, kept)
            found.removed[change.seq] = kept.seq or 0
            found.taken[kept.message_id] = change.seq
    for message in stored.messages:
        forms[message.message_id].append(message)
    for seq in sorted({*range(stored.shared + 1, stored.version + 1), *held} - held.keys()):
        found.faults.append(Fault("gap", stored.place, f"seq {seq} holds nothing"))
    for seq in (seq for seq in held if seq > stored.version):
        found.faults.append(Fault("gap", stored.place, f"seq {seq} is beyond version {stored.version}"))
    found.messages = dict(sorted(found.messages.items()))
    found.forms = dict(forms)
    found.batches = _batches(found, appends)
    return found


def _batches(positions: Positions, appends: Sequence[Append]) -> dict[str, list[int]]:
    """Each batch begins at its first message, or where the name changes. A message of no batch has the name that its id
    begins with.
    """
    owners = {
        id_: (append.name, number)
        for append in appends
        for number, id_ in enumerate(ids_of(append.name, append.thread))
    }
    found: dict[str, list[int]] = defaultdict(list)
    before = None
    for seq, message in positions.messages.items():
        if seq > positions.stored.shared:
            id_ = message.message_id
            name, number = owners.get(id_) or ((id_ or "").rpartition("/")[0], -1)
            if name != before or number == 0:
                found[name].append(seq)
            before = name
    return dict(found)
