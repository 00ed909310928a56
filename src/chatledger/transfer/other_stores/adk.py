"""The sessions of Google ADK: what its DatabaseSessionService writes in schema 1, and its SqliteSessionService.

Schema 0 holds pickled actions. Unpickling can run any code, so such a store is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, column, func, select, tuple_
from sqlalchemy import table as named_table
from sqlalchemy.types import Float

from chatledger.errors import DecodeError, StorageError
from chatledger.formats.codec import Decoded
from chatledger.formats.google_adk.session import UPDATED, SessionNames, identified, named, state_of_app, state_of_user
from chatledger.formats.wire.fields import kind_of
from chatledger.models import RulesLevel
from chatledger.models.json import JsonValue, loads
from chatledger.transfer.other_stores.database import SourceDatabase
from chatledger.transfer.other_stores.store import SharedValues, SourceRow, SourceSession, Store, as_time

_SESSIONS, _EVENTS = "sessions", "events"
_METADATA = "adk_internal_metadata"
_SCHEMA = "1"
_KEYS = ("app_name", "user_id", "id")
_EVENT_KEYS = ("app_name", "user_id", "session_id")
_AT_ONCE = 50
"""Number of sessions whose events are read together."""
_HINT = "check that --from names a database of ADK's DatabaseSessionService or SqliteSessionService"


class ADKStore(Store):
    format = "google-adk"
    has_users = True

    def __init__(self, database: SourceDatabase, *, sessions: Sequence[str] = ()) -> None:
        super().__init__(database, _EVENTS, sessions=sessions)

    async def prepare(self) -> None:
        events = await self._database.columns(_EVENTS) or {}
        if "actions" in events and "event_data" not in events:
            raise StorageError(
                f"{self._database.name} has ADK's schema 0, whose events hold pickles, and reading a pickle can run "
                "any code; migrate the store to schema 1 with ADK's own command, `adk migrate session "
                "--source_db_url … --dest_db_url …`, and import the new store"
            )
        await self._database.require(_SESSIONS, [*_KEYS, "state", "create_time", "update_time"], hint=_HINT)
        needed = [*_EVENT_KEYS, "id", "timestamp", "invocation_id", "event_data"]
        types = await self._database.require(_EVENTS, needed, hint=_HINT)
        await self._require_schema()
        # Only SqliteSessionService stores times as numbers. It sorts events of the same time as they were added.
        by_number = self._database.is_sqlite and isinstance(types["timestamp"], Float)
        self._order = (*_EVENT_KEYS, "timestamp", "rowid" if by_number else "id")

    async def _require_schema(self) -> None:
        if await self._database.columns(_METADATA) is None:
            return
        value: ColumnElement[str] = column("value")
        statement = select(value).select_from(named_table(_METADATA)).where(column("key") == "schema_version")
        for (version,) in await self._database.all(statement):
            if version != _SCHEMA:
                raise StorageError(
                    f"{self._database.name} has ADK's schema {version}, but this release reads only schema {_SCHEMA}"
                )

    async def count(self) -> int:
        statement = select(func.count()).select_from(named_table(_SESSIONS)).where(*self._chosen("id"))
        return await self._database.number(statement)

    async def shared(self) -> AsyncIterator[SharedValues | DecodeError]:
        async for page in self._database.rows("app_states", ("app_name",), [self._database.json("state")]):
            for app, state in map(tuple, page):
                yield _shared(f"state of app {app!r}", state_of_app(app), state)
        async for page in self._database.rows("user_states", ("app_name", "user_id"), [self._database.json("state")]):
            for app, user, state in map(tuple, page):
                yield _shared(f"state of user {user!r} of app {app!r}", state_of_user(app, user), state)

    async def sessions(self) -> AsyncIterator[SourceSession | DecodeError]:
        wanted = (self._database.json("state"), "create_time", "update_time")
        async for page in self._database.rows(_SESSIONS, _KEYS, wanted, *self._chosen("id"), size=_AT_ONCE):
            events = await self._events(page[0], page[-1])
            for row in page:
                yield _session(row, events.get(_key(row), []))

    async def _events(self, first: Row[Any], last: Row[Any]) -> dict[tuple[str, ...], list[SourceRow]]:
        """The events of the sessions from the first to the last, by session."""
        keys = tuple_(*map(column, _EVENT_KEYS))
        conditions = [keys >= tuple_(*_key(first)), keys <= tuple_(*_key(last)), *self._chosen("session_id")]
        wanted = ("id", "invocation_id", self._database.json("event_data"))
        events: dict[tuple[str, ...], list[SourceRow]] = {}
        async for page in self._database.rows(_EVENTS, self._order, wanted, *conditions):
            for key, group in groupby(page, _key):
                events.setdefault(key, []).extend(map(_row, group))
        return events

    def _ids(self) -> Select[Any]:
        name: ColumnElement[str] = column("id")
        return select(name).distinct().select_from(named_table(_SESSIONS)).where(*self._chosen("id"))

    def _chosen(self, name: str) -> list[ColumnElement[bool]]:
        return [column(name).in_(self._sessions)] if self._sessions else []

    def decode(self, session: SourceSession, rows: Sequence[SourceRow], rules: RulesLevel) -> Decoded:
        decoded = Decoded([])
        place = SessionNames.of_thread(session.thread_id)
        assert place is not None
        for row in rows:
            event = self._value(row)
            if not isinstance(event, dict):
                raise self._bad(row, f"an event is expected, not {kind_of(event)}")
            # ADK reads it this way: the other columns override the event, except for its time, which is exact.
            event = {**event, **row.fields, "timestamp": event.get("timestamp", row.fields["timestamp"])}
            of_event = self._decoded([row], [event], rules)
            decoded.losses.extend(of_event.losses)
            time = event["timestamp"]
            decoded.messages.extend(
                identified(
                    of_event.messages,
                    place,
                    event_id=event["id"],
                    invocation_id=event["invocation_id"],
                    timestamp=time if isinstance(time, (int, float)) else 0.0,
                )
            )
        return decoded


def _key(row: Row[Any]) -> tuple[str, ...]:
    """The app, the user and the session of a row, its first three columns."""
    return tuple(row[:3])


def _row(row: Row[Any]) -> SourceRow:
    *_, timestamp, _tie, id_, invocation_id, event = tuple(row)
    fields = {"id": id_, "invocation_id": invocation_id, "timestamp": _seconds(timestamp)}
    return SourceRow(id_, event, None, fields)


def _session(row: Row[Any], events: Sequence[SourceRow]) -> SourceSession | DecodeError:
    app, user, id_, state, created, updated = tuple(row)
    name = f"{app}/{user}/{id_}"
    try:
        values = named(_object(state))
    except ValueError as error:
        return DecodeError(f"session {name!r}: table {_SESSIONS}", str(error))
    return SourceSession(
        name=name,
        # ADK's service and ours strip the id when they look it up
        thread_id=SessionNames(app, user, id_.strip()).thread_id,
        rows=events,
        user_id=user,
        kind=app,
        created_at=as_time(created),
        values={UPDATED: _seconds(updated), **values},
    )


def _shared(name: str, scope: tuple[str, ...], state: object) -> SharedValues | DecodeError:
    try:
        return SharedValues(name, scope, named(_object(state)))
    except ValueError as error:
        return DecodeError(name, str(error))


def _object(state: object) -> Mapping[str, JsonValue]:
    """The state in a row. Raises ValueError."""
    if state is None:
        return {}
    try:
        value = loads(state) if isinstance(state, str) else state
    except (ValueError, RecursionError):
        raise ValueError("the state is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError(f"the state must be an object, not {kind_of(value)}")
    return value


def _seconds(value: object) -> float:
    """A time of a row in seconds since 1970, as ADK reads it."""
    if isinstance(value, (int, float)):
        return value
    time = as_time(value)
    return 0.0 if time is None else time.timestamp()
