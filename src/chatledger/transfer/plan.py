"""Plan the thread of a record without the ledger: its ids, messages, times and metadata.

Every id is derived, and none from what a record says: a thread's id from the id field of its record, or from the name
of the file and the record's place in it; a message's id from its thread and position. So the same file gives the same
rows at any time and on any machine, and an import finds stored messages by their ids.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from chatledger.errors import DecodeError
from chatledger.ids import derived_id, deriving
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.base import copy_with
from chatledger.models.json import JsonValue, dumps
from chatledger.transfer.detect import DEFAULT_FORMAT, ShapeOfFile
from chatledger.transfer.envelope import Envelope, Location, Parcel, take_out, to_metadata
from chatledger.transfer.fields import find_value, read_id, read_time
from chatledger.transfer.records import Record
from chatledger.transfer.shapes import BranchMessages, Conversation, Shape


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import. Fields are paths into a record, with dots between the keys.

    Without `field`, messages are read from the format's usual field, such as `messages`, or from the record itself.
    `format` is the name of a shape, or "auto" to detect it in each record. `time_field` applies to the record and to
    each message. With `stop_on_error`, the first bad record ends the import. `source` names the file in place of its
    own name, to find records without an id field again.
    """

    field: str | None = None
    id_field: str | None = None
    thread_field: str | None = None
    source: str | None = None
    time_field: str | None = None
    user_field: str | None = None
    format: str = DEFAULT_FORMAT
    rules: RulesLevel = "lenient"
    dry_run: bool = False
    stop_on_error: bool = False


@dataclass(frozen=True, slots=True)
class PlannedThread:
    thread_id: str
    user_id: str | None
    created_at: datetime | None
    rest: dict[str, JsonValue]
    envelope: Envelope
    branches: list[BranchMessages]
    rules: RulesLevel
    losses: list[Loss] = field(default_factory=list)
    has_time: bool = True
    earlier_id: str | None = None
    """For a record that its place identifies: what an earlier release made of its words. It is only looked for."""

    @property
    def count(self) -> int:
        return sum(len(branch.messages) for branch in self.branches)

    @property
    def metadata(self) -> dict[str, JsonValue]:
        return to_metadata(self.rest, self.envelope)

    def metadata_over(self, stored: Envelope) -> dict[str, JsonValue]:
        """The metadata for a stored thread, which keeps its position in the order of its first import."""
        first = replace(
            self.envelope,
            container=stored.container,
            file=stored.file,
            imported_at=stored.imported_at,
            index=stored.index,
            item=stored.item,
            around=stored.around,
        )
        return to_metadata(self.rest, first)


class Planner:
    """Plans the records of one file. It numbers equal records without an id, as an earlier release did."""

    def __init__(self, options: ImportOptions, file: str) -> None:
        self._options = options
        self._file = file
        self._shapes = ShapeOfFile(options.format, options.field)
        self._equal: Counter[str] = Counter()
        self._imported_at = datetime.now(UTC).isoformat(timespec="microseconds")

    def plan(self, record: Record, thread_id: str | None = None) -> PlannedThread:
        """The thread of the record, under that id if it is stored under another one. Raises DecodeError with the path
        into the record, and UnknownFormat if no shape recognises it.
        """
        options = self._options
        shape = self._shapes.of(record)
        location = shape.locate(record.value, options.field)
        parcel = take_out(record.value, location)
        earlier_id = None
        if thread_id is None:
            thread_id, earlier_id = self._ids(record, shape, parcel)
        conversation = _decoded(shape, parcel, location, options.rules)
        created_at = self._time(record.value, options.time_field or "")
        times = self._message_times(conversation, ".".join(location.keys or ("messages",)), created_at)
        branches = _identified(conversation.branches, thread_id, times)
        written_at = [
            message.created_at for branch in branches for message in branch.messages if message.created_at is not None
        ]
        return PlannedThread(
            thread_id=thread_id,
            user_id=self._user_id(record.value),
            created_at=created_at or next(iter(written_at), None),
            rest=parcel.rest,
            envelope=self._envelope(record, shape, parcel),
            branches=branches,
            rules=options.rules,
            losses=[*conversation.losses, *(Loss("repeated-key", None, key) for key in record.repeated)],
            has_time=created_at is not None or bool(written_at),
            earlier_id=earlier_id,
        )

    def other_format(self, record: Record) -> str | None:
        """The format that the record has in place of the one in the options, if that is certain."""
        return self._shapes.other_than_asked(record)

    def other_ids(self, record: Record, planned: PlannedThread) -> set[str]:
        """The ids that the record would have with another id field, or with none."""
        shape = self._shapes.of(record)
        payload = take_out(record.value, shape.locate(record.value, self._options.field)).payload
        ids = {self._id_of_place(record), _earlier_id(_digest(shape.identify(record.value, payload)), 1)}
        if isinstance(record.value, dict):
            values = (value for value in record.value.values() if type(value) in (str, int) and value != "")
            ids |= {derived_id("record id", str(value)) for value in values}
        return ids - {planned.thread_id, planned.earlier_id or ""}

    def _ids(self, record: Record, shape: Shape, parcel: Parcel) -> tuple[str, str | None]:
        """The id of the record's thread, and the one that an earlier release made of the record's words."""
        options = self._options
        if options.thread_field is not None:
            return read_id(find_value(record.value, options.thread_field), options.thread_field), None
        if options.id_field is not None:
            own = read_id(find_value(record.value, options.id_field), options.id_field)
            return derived_id("record id", own), None
        identity = shape.identify(record.value, parcel.payload)
        digest = _digest(identity)
        self._equal[digest] += 1
        earlier_id = _earlier_id(digest, self._equal[digest])
        if isinstance(identity, str):  # a tree's own id
            return earlier_id, None
        return self._id_of_place(record), earlier_id

    def _id_of_place(self, record: Record) -> str:
        return derived_id("place", self._options.source or self._file, str(record.index), str(record.item or 0))

    def _user_id(self, record: JsonValue) -> str | None:
        value = find_value(record, self._options.user_field)
        return None if value is None else read_id(value, self._options.user_field or "")

    def _time(self, holder: JsonValue, path: str) -> datetime | None:
        value = find_value(holder, self._options.time_field)
        return None if value is None else read_time(value, path)

    def _message_times(
        self, conversation: Conversation, where: str, otherwise: datetime | None
    ) -> Sequence[datetime | None]:
        """The time of each message: its own, else the record's. A message has its own only if each object of the record
        is one message.
        """
        name = self._options.time_field
        if name is None or len(conversation.sources) != conversation.count:
            return [otherwise] * conversation.count
        own = (self._time(source, f"{where}[{n}].{name}") for n, source in enumerate(conversation.sources))
        return [time or otherwise for time in own]

    def _envelope(self, record: Record, shape: Shape, parcel: Parcel) -> Envelope:
        return Envelope(
            format=shape.name,
            container=record.container,
            file=self._file,
            imported_at=self._imported_at,
            index=record.index,
            path=parcel.path,
            keys=parcel.keys,
            single=parcel.single,
            item=record.item or 0,
            around=record.around,
        )


def _earlier_id(digest: str, number: int) -> str:
    """Threads that an earlier release imported without an id field keep this id. No other thread gets it, but that of a
    tree, whose own id is in the digest.
    """
    return derived_id("record", digest, str(number))


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(dumps(value).encode("utf-8", "surrogatepass")).hexdigest()


def _decoded(shape: Shape, parcel: Parcel, location: Location, rules: RulesLevel) -> Conversation:
    """Decode the conversation. The path of a DecodeError begins at the record."""
    try:
        return shape.decode(parcel.payload, rules)
    except DecodeError as error:
        raise DecodeError(_path_in_record(error.path, location), error.detail) from error


def _path_in_record(path: str, location: Location) -> str:
    """Replace the codec's name for the root of a list with the record's key."""
    if not location.single or not location.keys:
        return ".".join([*location.path, path])
    return ".".join([*location.path, location.keys[0]]) + _BEFORE_ROOT.sub("", path)


_BEFORE_ROOT = re.compile(r"^(?!\[|\.)[^.\[]*")


def _identified(
    branches: Sequence[BranchMessages], thread_id: str, times: Sequence[datetime | None]
) -> list[BranchMessages]:
    """Give each message an id derived from its position, unless the format supplies one."""
    left = iter(times)
    id_of = deriving("imported message", thread_id)
    return [
        replace(
            branch,
            messages=[_filled(message, id_of, number, n, next(left)) for n, message in enumerate(branch.messages)],
        )
        for number, branch in enumerate(branches)
    ]


def _filled(
    message: ChatMessage, id_of: Callable[[str], str], branch: int, number: int, time: datetime | None
) -> ChatMessage:
    position = str(number) if not branch else f"{branch}/{number}"
    filled = {
        "message_id": message.message_id or id_of(position),
        "created_at": message.created_at or time,
    }
    return copy_with(message, filled)
