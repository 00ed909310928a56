"""What clients asked for and what they were told, each with the moments of its beginning and its end.

The clock is the machine's monotonic one, which all processes share, or any that counts up. A recording is lines of
JSON, so a process can write it to a pipe until it is killed: a batch whose end is missing may be stored or not.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from chatledger import Appended, ChatLedgerError, Ledger, OutcomeUnknown, StorageError
from tests.faults.batches import batch

Outcome = Literal["open", "acknowledged", "refused", "unknown"]
"""open, and unknown where OutcomeUnknown was the end: nobody was told, so it is stored once or not at all.
refused: an error that promises that nothing was written.
"""


@dataclass(slots=True)
class Append:
    name: str
    thread: str
    began: int
    branch: int = 0
    ended: int | None = None
    outcome: Outcome = "open"
    first: int | None = None
    last: int | None = None


@dataclass(slots=True)
class Read:
    """The messages from `first` on, by id, as one reader saw them, and the version that it was told."""

    thread: str
    began: int
    ended: int
    first: int
    ids: list[str | None]
    version: int
    branch: int = 0


@dataclass(slots=True)
class Recording:
    appends: dict[str, Append] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    unknown: int = 0
    """Outcomes that a writer was not told, and found out by sending the same batch again."""
    faults: int = 0

    @property
    def acknowledged(self) -> int:
        return sum(append.outcome == "acknowledged" for append in self.appends.values())

    def lines(self) -> Iterable[str]:
        yield from (json.dumps({"append": asdict(append)}) for append in self.appends.values())
        yield from (json.dumps({"read": asdict(read)}) for read in self.reads)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in self.lines()))

    def take(self, line: str) -> Append | None:
        """Add a line that another process wrote; of one append the last line holds. Gives an append that is told of."""
        said = json.loads(line)
        if "unknown" in said:
            self.unknown += 1
        if "read" in said:
            self.reads.append(Read(**said["read"]))
        if "append" not in said:
            return None
        append = Append(**said["append"])
        self.appends[append.name] = append
        return append


class Recorder:
    """Appends by name and reads, through a ledger, and records them. `tell` hears each beginning and each end."""

    def __init__(
        self,
        ledger: Ledger,
        recording: Recording,
        *,
        tell: Callable[[str], object] | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        resolve: float = 60,
    ) -> None:
        """`resolve`: seconds in which a batch is sent again while its outcome is unknown or the database is away."""
        self._ledger = ledger
        self._recording = recording
        self._tell = tell
        self._clock = clock
        self._resolve = resolve

    async def append(self, name: str, thread: str, *, branch: int | None = None) -> Appended | None:
        """None where nobody could say in time what became of it; what is refused for good is raised."""
        append = Append(name, thread, self._clock(), branch=branch or 0)
        self._recording.appends[name] = append
        self._say(append)
        stored = await self._insist(append, branch)
        if stored is not None:
            append.outcome, append.first, append.last = "acknowledged", stored.first_seq, stored.last_seq
        self._end(append)
        return stored

    async def _insist(self, append: Append, branch: int | None) -> Appended | None:
        deadline = time.monotonic() + self._resolve
        while True:
            try:
                return await self._ledger.messages.append(
                    append.thread, batch(append.name), branch=branch, run_id=f"run of {append.thread}"
                )
            except OutcomeUnknown:
                append.outcome = "unknown"
                self._count_unknown()
            except StorageError as error:
                if append.outcome != "unknown":
                    append.outcome = "refused"  # of this attempt; the same batch is sent again
                if not error.retryable:
                    self._end(append)
                    raise
            except ChatLedgerError:
                append.outcome = "refused"
                self._end(append)
                raise
            except asyncio.CancelledError:
                append.outcome = "open"
                raise
            if time.monotonic() > deadline:
                return None
            await asyncio.sleep(0.05)

    async def read(self, thread: str, *, branch: int | None = None, last: int | None = None) -> None:
        began = self._clock()
        history = await self._ledger.messages.history(thread, branch=branch, last=last)
        first = history.version - len(history.messages) + 1
        ids = [message.message_id for message in history.messages]
        read = Read(thread, began, self._clock(), first, ids, history.version, branch or 0)
        self._recording.reads.append(read)
        if self._tell is not None:
            self._tell(json.dumps({"read": asdict(read)}))

    def _count_unknown(self) -> None:
        self._recording.unknown += 1
        if self._tell is not None:
            self._tell(json.dumps({"unknown": 1}))

    def _end(self, append: Append) -> None:
        append.ended = self._clock()
        self._say(append)

    def _say(self, append: Append) -> None:
        if self._tell is not None:
            self._tell(json.dumps({"append": asdict(append)}))
