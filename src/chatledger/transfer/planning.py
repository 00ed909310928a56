"""What a record will be in the ledger, worked out without it: ids, messages, times, metadata.

Every id is derived: the thread's from what identifies the record, a message's from the thread and its position. So the
same record comes to the same rows on any day and on any machine, and what is stored already is found by its ids.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.ids import derived_id
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.json import JsonValue, dumps
from chatledger.transfer.envelope import Envelope, Parcel, to_metadata, unpack
from chatledger.transfer.fields import find_value, read_id, read_time
from chatledger.transfer.records import Record

DEFAULT_FORMAT = "openai-chat"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The fields are paths into a record, with dots between their keys. `field` None: `messages`, or the record itself.

    `time_field` is looked for in the record and in each message. `stop_on_error`: the first bad record ends the import.
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
    messages: list[ChatMessage]
    rules: RulesLevel
    losses: list[Loss] = field(default_factory=list)
    has_time: bool = True

    @property
    def metadata(self) -> dict[str, JsonValue]:
        return to_metadata(self.rest, self.envelope)

    def metadata_over(self, stored: Envelope) -> dict[str, JsonValue]:
        """The metadata for a thread that is there: it keeps its place in the order in which records first came."""
        first = replace(
            self.envelope,
            container=stored.container,
            file=stored.file,
            imported_at=stored.imported_at,
            index=stored.index,
        )
        return to_metadata(self.rest, first)


class Planner:
    """Plans the records of one file. It remembers a hash of each record that has no id, to tell equal ones apart."""

    def __init__(self, options: ImportOptions, file: str) -> None:
        self._options = options
        self._file = file
        self._codec = get_codec(options.format)
        self._equal: Counter[str] = Counter()
        self._imported_at = datetime.now(UTC).isoformat(timespec="microseconds")

    def plan(self, record: Record) -> PlannedThread:
        """Raises DecodeError with the path into the record."""
        options = self._options
        parcel = unpack(record.value, options.field)
        thread_id = self._thread_id(record.value, parcel)
        where = ".".join(parcel.path) or "messages"
        try:
            decoded = self._codec.decode(parcel.messages, rules=options.rules)
        except DecodeError as error:
            raise DecodeError(where + error.path.removeprefix("messages"), error.detail) from error
        created_at = self._time(record.value, options.time_field or "")
        times = self._message_times(parcel.messages, where, created_at, len(decoded.messages))
        return PlannedThread(
            thread_id=thread_id,
            user_id=self._user_id(record.value),
            created_at=created_at or next((time for time in times if time is not None), None),
            rest=parcel.rest,
            envelope=self._envelope(record, parcel),
            messages=_identified(decoded.messages, thread_id, times),
            rules=options.rules,
            losses=[*decoded.losses, *(Loss("repeated-key", None, key) for key in record.repeated)],
            has_time=options.time_field is None or any(time is not None for time in (created_at, *times)),
        )

    def _thread_id(self, record: JsonValue, parcel: Parcel) -> str:
        options = self._options
        if options.thread_field is not None:
            return read_id(find_value(record, options.thread_field), options.thread_field)
        if options.id_field is not None:
            return derived_id("record id", read_id(find_value(record, options.id_field), options.id_field))
        digest = hashlib.sha256(dumps(parcel.messages).encode("utf-8", "surrogatepass")).hexdigest()
        self._equal[digest] += 1
        return derived_id("record", digest, str(self._equal[digest]))

    def _user_id(self, record: JsonValue) -> str | None:
        value = find_value(record, self._options.user_field)
        return None if value is None else read_id(value, self._options.user_field or "")

    def _time(self, holder: JsonValue, path: str) -> datetime | None:
        value = find_value(holder, self._options.time_field)
        return None if value is None else read_time(value, path)

    def _message_times(
        self, payload: Any, where: str, otherwise: datetime | None, count: int
    ) -> Sequence[datetime | None]:
        """A time for each message: its own, else the record's, or that alone if one object is not one message."""
        name = self._options.time_field
        if name is None or not isinstance(payload, list) or len(payload) != count:
            return [otherwise] * count
        own = (self._time(message, f"{where}[{index}].{name}") for index, message in enumerate(payload))
        return [time or otherwise for time in own]

    def _envelope(self, record: Record, parcel: Parcel) -> Envelope:
        return Envelope(
            format=self._codec.name,
            container=record.container,
            path=parcel.path,
            position=parcel.position,
            file=self._file,
            imported_at=self._imported_at,
            index=record.index,
        )


def _identified(messages: Sequence[ChatMessage], thread_id: str, times: Sequence[datetime | None]) -> list[ChatMessage]:
    """The messages with an id each, of their position, unless the format brings one."""
    identified = []
    for index, (message, time) in enumerate(zip(messages, times, strict=True)):
        filled = {
            "message_id": message.message_id or derived_id("imported message", thread_id, str(index)),
            "created_at": message.created_at or time,
        }
        identified.append(message.model_copy(update=filled))
    return identified
