"""Plan the thread of a record without the ledger: its ids, messages, times and metadata.

Every id is derived: a thread's id from the identity of its record, a message's id from its thread and position. So the
same record gives the same rows at any time and on any machine, and an import finds stored messages by their ids.
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
from chatledger.models.json import JsonValue, dumps
from chatledger.models.trusted import copy_with
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
    each message. With `stop_on_error`, the first bad record ends the import.
    """

    field: str | None = None
    id_field: str | None = None
    thread_field: str | None = None
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
    """Plans the records of one file. It numbers equal records without an id, to tell them apart."""

    def __init__(self, options: ImportOptions, file: str) -> None:
        self._options = options
        self._file = file
        self._shapes = ShapeOfFile(options.format, options.field)
        self._equal: Counter[str] = Counter()
        self._imported_at = datetime.now(UTC).isoformat(timespec="microseconds")

    def plan(self, record: Record) -> PlannedThread:
        """Raises DecodeError with the path into the record, and UnknownFormat if no shape recognises it."""
        options = self._options
        shape = self._shapes.of(record)
        location = shape.locate(record.value, options.field)
        parcel = take_out(record.value, location)
        thread_id = self._thread_id(record.value, shape, parcel)
        conversation = _decoded(shape, parcel, location, options.rules)
        created_at = self._time(record.value, options.time_field or "")
        times = self._message_times(conversation, ".".join(location.keys or ("messages",)), created_at)
        branches = _identified(conversation.branches, thread_id, times)
        said = [
            message.created_at for branch in branches for message in branch.messages if message.created_at is not None
        ]
        return PlannedThread(
            thread_id=thread_id,
            user_id=self._user_id(record.value),
            created_at=created_at or next(iter(said), None),
            rest=parcel.rest,
            envelope=self._envelope(record, shape, parcel),
            branches=branches,
            rules=options.rules,
            losses=[*conversation.losses, *(Loss("repeated-key", None, key) for key in record.repeated)],
            has_time=created_at is not None or bool(said),
        )

    def other_ids(self, record: Record, planned: PlannedThread) -> set[str]:
        """The ids that the record would have with another id field, or with none."""
        shape = self._shapes.of(record)
        payload = take_out(record.value, shape.locate(record.value, self._options.field)).payload
        ids = {derived_id("record", _digest(shape.identify(record.value, payload)), "1")}
        if isinstance(record.value, dict):
            values = (value for value in record.value.values() if type(value) in (str, int) and value != "")
            ids |= {derived_id("record id", str(value)) for value in values}
        return ids - {planned.thread_id}

    def _thread_id(self, record: JsonValue, shape: Shape, parcel: Parcel) -> str:
        options = self._options
        if options.thread_field is not None:
            return read_id(find_value(record, options.thread_field), options.thread_field)
        if options.id_field is not None:
            return derived_id("record id", read_id(find_value(record, options.id_field), options.id_field))
        digest = _digest(shape.identify(record, parcel.payload))
        self._equal[digest] += 1
        return derived_id("record", digest, str(self._equal[digest]))

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
