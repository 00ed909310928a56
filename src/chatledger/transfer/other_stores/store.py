"""Shared by the readers of the frameworks' stores: sessions with their rows, and decoding of rows into messages."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, cast, column, distinct, func, select
from sqlalchemy import table as named_table
from sqlalchemy.types import DateTime, Text

from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.formats.codec import Decoded
from chatledger.formats.wire.fields import kind_of
from chatledger.models import RulesLevel
from chatledger.models.json import JsonValue, dumps, loads
from chatledger.transfer.other_stores.database import SourceDatabase


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of an item, a message or an event: its JSON as the database returns it, and its time."""

    id: object
    json: object
    created_at: datetime | None = None
    fields: Mapping[str, JsonValue] = field(default_factory=dict)
    """Values of the message that stand in other columns of the row."""


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A session, and the thread that it becomes. `values` are kept beside the thread's messages."""

    name: str
    thread_id: str
    rows: Sequence[SourceRow]
    user_id: str | None = None
    kind: str | None = None
    created_at: datetime | None = None
    values: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"session {self.name!r}"

    def digest(self, count: int) -> str:
        """A digest of the first `count` rows. A later import compares it, to see that they did not change."""
        known = hashlib.sha256()
        for row in self.rows[:count]:
            known.update(dumps([str(row.id), str(row.json)]).encode("utf-8", "surrogatepass"))
        return known.hexdigest()

    @property
    def values_digest(self) -> str:
        return hashlib.sha256(dumps(dict(self.values)).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class SharedValues:
    """Values that belong to no thread, such as the state of a user or an app, for a scope of `kv`."""

    label: str
    scope: tuple[str, ...]
    values: Mapping[str, JsonValue]


class BadRow(DecodeError):
    """A row that cannot be read. `path` names it."""


class Store(ABC):
    """A framework's store in a database."""

    format: str
    """The format of its messages."""
    has_users = False
    """Whether the store records the user of each session."""

    def __init__(self, database: SourceDatabase, table: str, *, sessions: Sequence[str] = ()) -> None:
        self._database = database
        self._table = table
        self._sessions = sessions

    @property
    def place(self) -> str:
        """The path of the file, or the URL without its password."""
        return self._database.name

    @abstractmethod
    async def prepare(self) -> None:
        """Inspect the tables. Raises StorageError if they are not the framework's."""

    @abstractmethod
    async def count(self) -> int:
        """The number of sessions."""

    async def missing(self) -> Sequence[str]:
        """The chosen session ids that the store does not contain."""
        if not self._sessions:
            return []
        stored = {row[0] for row in await self._database.all(self._ids())}
        return [name for name in dict.fromkeys(self._sessions) if name not in stored]

    @abstractmethod
    def _ids(self) -> Select[Any]:
        """The statement that reads the ids of the chosen sessions as text."""

    @abstractmethod
    def sessions(self) -> AsyncIterator[SourceSession | DecodeError]:
        """Each session with its rows, or an error for a session that cannot be read."""

    async def shared(self) -> AsyncIterator[SharedValues | DecodeError]:
        """The values that belong to no session, or an error for values that cannot be read."""
        none: Sequence[SharedValues | DecodeError] = ()
        for values in none:
            yield values

    @abstractmethod
    def decode(self, session: SourceSession, rows: Sequence[SourceRow], rules: RulesLevel) -> Decoded:
        """Decode these rows of the session into messages. Raises BadRow."""

    # --- For the readers ----------------------------------------------------------------------------------------------

    def _value(self, row: SourceRow) -> JsonValue:
        """Raises BadRow."""
        if not isinstance(row.json, str):
            raise self._bad(row, f"text is expected, not {kind_of(row.json)}")
        try:
            return loads(row.json)
        except (ValueError, RecursionError):
            raise self._bad(row, "not JSON") from None

    def _decoded(self, rows: Sequence[SourceRow], values: Sequence[JsonValue], rules: RulesLevel) -> Decoded:
        """Raises BadRow for the first row that by itself does not fit the format."""
        codec = get_codec(self.format)
        try:
            return codec.decode(list(values), rules=rules)
        except DecodeError:
            for row, value in zip(rows, values, strict=True):
                try:
                    codec.decode([value], rules=rules)
                except DecodeError as error:
                    raise self._bad(row, f"{error.path}: {error.detail}") from error
            raise

    def _bad(self, row: SourceRow, detail: str) -> BadRow:
        return BadRow(f"table {self._table}, row {row.id}", detail)


_ID = cast(column("session_id"), Text)
"""Cast to text, because some tables store UUIDs."""


class OneTable(Store):
    """A store with one table of messages, each with its session's id. `json` names the column of the message."""

    json: str
    hint = "name the table with --table"
    order: Sequence[str] = ("id",)
    """The columns by which the framework's own reader sorts the rows of a session."""
    time: str | None = None

    async def prepare(self) -> None:
        needed = ("id", "session_id", self.json)
        self._columns = await self._database.require(self._table, needed, hint=self.hint)

    async def count(self) -> int:
        statement = select(func.count(distinct(column("session_id")))).select_from(named_table(self._table))
        return await self._database.number(statement.where(*self._chosen()))

    async def sessions(self) -> AsyncIterator[SourceSession | DecodeError]:
        named, rows = None, list[SourceRow]()
        others = [column("id"), self._database.json(self.json), *self._times()]
        order = ("session_id", *self.order)
        async for page in self._database.rows(self._table, order, others, *self._chosen()):
            for row in page:
                if row[0] != named and rows:
                    yield self._session(named, rows)
                    rows = []
                named = row[0]
                rows.append(self._row(row[len(order) :]))
        if rows:
            yield self._session(named, rows)

    def _ids(self) -> Select[Any]:
        return select(_ID).distinct().select_from(named_table(self._table)).where(*self._chosen())

    def _chosen(self) -> list[ColumnElement[bool]]:
        return [_ID.is_not(None), *([_ID.in_(self._sessions)] if self._sessions else [])]

    def _times(self) -> list[ColumnElement[Any]]:
        """On PostgreSQL, a time without a zone is in the server's zone. The cast converts it with that zone."""
        if self.time is None:
            return []
        time: ColumnElement[Any] = column(self.time)
        return [time if self._database.is_sqlite else cast(time, DateTime(timezone=True))]

    def _row(self, columns: Sequence[Any]) -> SourceRow:
        id_, json, *times = columns
        return SourceRow(id_, json, as_time(times[0]) if times else None)

    def _session(self, named: object, rows: Sequence[SourceRow]) -> SourceSession:
        times = (row.created_at for row in rows)
        return SourceSession(str(named), str(named), rows, created_at=next((time for time in times if time), None))


def as_time(value: object) -> datetime | None:
    """A driver's value as a time: a text or a time without a zone is UTC, a number is in seconds since 1970."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value
