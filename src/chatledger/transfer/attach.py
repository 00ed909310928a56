"""Find the messages of a record that are not stored yet, and the branches to append them to.

Messages are matched by their ids along the path from the first message. So a tree may grow anywhere: stored messages
are compared and left as they are, and new replies go to the end of a branch or to a new branch. For a new thread, all
messages are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chatledger.errors import VersionConflict
from chatledger.models import ChatMessage
from chatledger.repositories.history import History, with_draft
from chatledger.storage.rows.messages import is_encoded_alike
from chatledger.transfer.shapes import BranchMessages


class Spot(NamedTuple):
    """The position of a message: the branch that holds it, and its seq. (0, 0) is before the first message."""

    branch: int
    seq: int


START = Spot(0, 0)


@dataclass(frozen=True, slots=True)
class Tail:
    """Messages to append to `branch`. With `fork_at`, the branch is new and begins after that message."""

    messages: Sequence[ChatMessage]
    branch: int = 0
    fork_at: Spot | None = None


@dataclass(slots=True)
class StoredMessages:
    """The stored messages: the replies to each message, the last message of each branch, and its last position, which
    may hold no message.
    """

    replies: dict[Spot, dict[str | None, tuple[Spot, ChatMessage]]] = field(default_factory=dict)
    ends: dict[int, Spot] = field(default_factory=lambda: {0: START})
    versions: dict[int, int] = field(default_factory=lambda: {0: 0})

    def add(self, history: History) -> None:
        before = START
        for message in with_draft(history):
            spot = Spot(message.branch or 0, message.seq or 0)
            self.replies.setdefault(before, {})[message.message_id] = (spot, message)
            before = spot
        self.ends[history.branch], self.versions[history.branch] = before, history.last_seq


def attach(thread_id: str, branches: Sequence[BranchMessages], stored: StoredMessages) -> Iterator[Tail]:
    """The messages to append, in this order. Raises VersionConflict if a stored message differs from the record's."""
    spots: dict[Spot, Spot] = {START: START}
    for number, branch in enumerate(branches):
        known = _known(thread_id, number, branch, spots, stored)
        rest = branch.messages[known:]
        if not rest:
            continue
        last = spots[Spot(number, branch.at + known) if known else Spot(branch.parent, branch.at)]
        if last == START and stored.ends[0] != START:
            detail = "the record begins with another message"
            raise VersionConflict("branch", 0, stored.versions[0], detail, thread_id=thread_id, branch=0)
        forks = stored.ends[last.branch] != last
        target = max(stored.ends) + 1 if forks else last.branch
        before = last.seq if forks else stored.versions[target]
        stored.versions[target] = before + len(rest)
        stored.ends[target] = Spot(target, stored.versions[target])
        spots |= {Spot(number, branch.at + known + n): Spot(target, before + n) for n in range(1, len(rest) + 1)}
        yield Tail(rest, target, last if forks else None)


def _known(thread_id: str, number: int, branch: BranchMessages, spots: dict[Spot, Spot], stored: StoredMessages) -> int:
    """Count the branch's messages that are stored, and note their positions in `spots`."""
    spot = spots[Spot(branch.parent, branch.at)]
    for count, message in enumerate(branch.messages):
        replies: Mapping[str | None, tuple[Spot, ChatMessage]] = stored.replies.get(spot, {})
        if message.message_id not in replies:
            return count
        spot, there = replies[message.message_id]
        if not is_encoded_alike(there, message):
            detail = f"message {message.message_id!r} of the record differs from the stored message"
            version = stored.versions[spot.branch]
            raise VersionConflict("branch", spot.seq, version, detail, thread_id=thread_id, branch=spot.branch)
        spots[Spot(number, branch.at + count + 1)] = spot
    return len(branch.messages)
