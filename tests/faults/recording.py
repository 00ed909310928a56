"""The requests of clients and the answers that they got, each with the moments of its beginning and its end.

The clock is the machine's monotonic one, which all processes share, or any that counts up. A recording is lines of
JSON, so a process can write it to a pipe until it is killed: a batch whose end is missing may be stored or not.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from chatledger import Appended, ChatLedgerError, ChatMessage, Ledger, Newest, StorageError
from chatledger.errors import MessageNotFound, OutcomeUnknown
from chatledger.repositories.history import with_draft
from tests.faults.batches import LAST, batch, is_changing, revised, values

OFTEN = 0.1
"""How often a client reads a value, pops or revises, for each append."""
Outcome = Literal["open", "acknowledged", "refused", "unknown"]
"""open, and unknown where OutcomeUnknown or a COMMIT without an answer was the end: nobody was told, so it is stored
once or not at all.
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
class Change:
    """A pop, which says what left, or a revision of a message. Neither is sent again."""

    name: str
    kind: Literal["popped", "revised"]
    thread: str
    began: int
    branch: int = 0
    ended: int | None = None
    outcome: Outcome = "open"
    message_id: str | None = None


@dataclass(slots=True)
class Read:
    """The messages, by id, as one reader saw them, and the version that it was told: all of them, or the last ones.
    `answers` has the call that a result answers, as (seq, index), by the id of the result.
    """

    thread: str
    began: int
    ended: int
    ids: list[str | None]
    version: int
    branch: int = 0
    whole: bool = True
    answers: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class ValueRead:
    """The value that names the last batch with values, as one reader saw it, and its version."""

    thread: str
    began: int
    ended: int
    name: str
    version: int


@dataclass(slots=True)
class Recording:
    appends: dict[str, Append] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    value_reads: list[ValueRead] = field(default_factory=list)
    unknown: int = 0
    """Outcomes that a writer was not told, and found out by sending the same batch again."""
    faults: int = 0

    @property
    def acknowledged(self) -> int:
        return sum(append.outcome == "acknowledged" for append in self.appends.values())

    def lines(self) -> Iterable[str]:
        yield from (json.dumps({"append": asdict(append)}) for append in self.appends.values())
        yield from (json.dumps({"change": asdict(change)}) for change in self.changes.values())
        yield from (json.dumps({"read": asdict(read)}) for read in self.reads)
        yield from (json.dumps({"value": asdict(read)}) for read in self.value_reads)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in self.lines()))

    def take(self, line: str) -> Append | None:
        """Add a line that another process wrote; of one write the last line holds. Gives an append that is told of."""
        said = json.loads(line)
        if "unknown" in said:
            self.unknown += 1
        if "read" in said:
            self.reads.append(Read(**said["read"]))
        if "value" in said:
            self.value_reads.append(ValueRead(**said["value"]))
        if "change" in said:
            change = Change(**said["change"])
            self.changes[change.name] = change
        if "append" not in said:
            return None
        append = Append(**said["append"])
        self.appends[append.name] = append
        return append


class Recorder:
    """Appends and changes by name, and reads, through a ledger, and records them. `tell` hears each beginning and each
    end.
    """

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
            append.outcome, append.first, append.last = "acknowledged", stored.messages[0].seq, stored.last_seq
        self._end(append)
        return stored

    async def _insist(self, append: Append, branch: int | None) -> Appended | None:
        deadline, changing = time.monotonic() + self._resolve, is_changing(append.thread)
        while True:
            try:
                return await self._ledger.messages.append(
                    append.thread,
                    batch(append.name, changing=changing),
                    branch=branch,
                    run_id=f"run of {append.thread}",
                    idempotency_key=append.name if changing else None,
                    kv=values(append.name) or None,
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
        history = await self._ledger.messages.history(thread, None if last is None else Newest(last), branch=branch)
        ids = [message.message_id for message in with_draft(history)]
        read = Read(thread, began, self._clock(), ids, history.last_seq, branch or 0, last is None)
        results = [message for message in history.messages if message.answers is not None]
        read.answers = {one.message_id or "": [one.answers.seq, one.answers.index] for one in results if one.answers}
        self._recording.reads.append(read)
        self._tell_of("read", read)

    async def read_value(self, thread: str) -> None:
        """The last one that came with a batch. Nothing is recorded if there is none yet."""
        began = self._clock()
        value = await self._ledger.kv.get(("thread", thread), LAST)
        if value is not None:
            read = ValueRead(thread, began, self._clock(), str(value.value), value.version)
            self._recording.value_reads.append(read)
            self._tell_of("value", read)

    async def pop(self, name: str, thread: str) -> None:
        change = Change(name, "popped", thread, self._clock())
        popped = await self._change(change, lambda: self._ledger.messages.pop(thread))
        change.message_id = None if popped is None else popped.message_id
        self._end(change)

    async def revise(self, name: str, thread: str, message: ChatMessage) -> None:
        change = Change(name, "revised", thread, self._clock(), message_id=message.message_id)
        new = revised(message, name)
        await self._change(change, lambda: self._ledger.messages.revise(thread, message.message_id or "", new))
        self._end(change)

    async def _change(self, change: Change, make: Callable[[], Awaitable[ChatMessage | None]]) -> ChatMessage | None:
        self._recording.changes[change.name] = change
        self._say(change)
        try:
            changed = await make()
        except OutcomeUnknown:
            change.outcome = "unknown"
        except MessageNotFound:
            change.outcome = "refused"
        except StorageError as error:
            change.outcome = "unknown" if "may be committed or not" in str(error) else "refused"
            if change.outcome == "refused" and not error.retryable:
                raise
        else:
            change.outcome = "acknowledged"
            return changed
        return None

    async def work(self, name: str, thread: str, chance: random.Random) -> None:
        """Append a batch. Now and then read a value, and in a changing thread pop or revise a message as well."""
        stored = await self.append(name, thread)
        what = chance.random()
        if what < OFTEN:
            await self.read_value(thread)
        elif is_changing(thread) and what < 2 * OFTEN:
            await self.pop(f"pop after {name}", thread)
        elif is_changing(thread) and what < 3 * OFTEN and stored is not None:
            await self.revise(f"revision of {name}", thread, chance.choice(stored.messages))

    def _count_unknown(self) -> None:
        self._recording.unknown += 1
        if self._tell is not None:
            self._tell(json.dumps({"unknown": 1}))

    def _end(self, write: Append | Change) -> None:
        write.ended = self._clock()
        self._say(write)

    def _say(self, write: Append | Change) -> None:
        self._tell_of("append" if isinstance(write, Append) else "change", write)

    def _tell_of(self, kind: str, said: Append | Change | Read | ValueRead) -> None:
        if self._tell is not None:
            self._tell(json.dumps({kind: asdict(said)}))
