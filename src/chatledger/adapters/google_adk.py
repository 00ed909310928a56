"""The sessions of the Google Agent Development Kit, kept in a ledger.

    sessions = ChatLedgerSessionService(ledger)
    runner = Runner(app_name="app", agent=agent, session_service=sessions)

A session is a thread of its user's, of the kind of its app. An event is a message, and each further result in it one
more, in the format `google-adk`. State is no message: its values lie in `ledger.kv`, those of a session with its
thread, those of a user or an app with the user or the tenant.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import to_jsonable_python

from chatledger.adapters.extra import importing
from chatledger.adapters.write import in_transaction, settled
from chatledger.arguments import RULES, Kind, require
from chatledger.errors import DecodeError, EncodeError, IdConflict, ThreadNotFound, VersionConflict
from chatledger.formats import get_codec
from chatledger.formats.google_adk.codec import as_model, events_of
from chatledger.formats.google_adk.session import (
    UPDATED,
    SessionNames,
    identified,
    moment,
    named,
    state_of_user,
    unnamed,
)
from chatledger.formats.google_adk.write import Event as Written
from chatledger.ledger import Ledger
from chatledger.models import Appended, ChatMessage, Mark, Newest, Page, RulesLevel
from chatledger.repositories.history import History, with_draft
from chatledger.storage.repositories.kv import KvScope
from chatledger.transaction import Transaction, as_user

with importing("google", extra="google-adk", name="Google ADK"):
    from google.adk.errors._stale_session_error import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events import Event
    from google.adk.platform import time as platform_time
    from google.adk.platform import uuid as platform_uuid
    from google.adk.sessions import BaseSessionService, Session, State
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

__all__ = ["ChatLedgerSessionService", "UnstorableValue"]

FORMAT = "google-adk"
_LEDGER = Kind("a Ledger", Ledger)
_LOGGER = logging.getLogger(__name__)
_PAGE = 1_000
_MAX_VALUES = 60
"""Values that are written in the statement of an append. It may have a few more, of which the time is one."""


class UnstorableValue(DecodeError, TypeError):
    """A value of an event or a state is not JSON, such as a live object. `path` is its place. Nothing was written."""


class ChatLedgerSessionService(BaseSessionService):  # type: ignore[misc]  # the type checker does not have ADK
    """ADK's session service on a ledger. The ledger must be the tenant's, not the view of a user: the service selects
    the user of each session itself.

        runner = Runner(app_name="app", agent=agent, session_service=ChatLedgerSessionService(ledger))

    `rules` is the level of the threads that the service creates. ADK repairs its events when it reads them, so the
    default accepts every event.
    """

    def __init__(self, ledger: Ledger, *, rules: RulesLevel = "lenient") -> None:
        require(_LEDGER, ledger=ledger)
        require(RULES, rules=rules)
        self._ledger = ledger
        self._rules = rules

    # --- Sessions -----------------------------------------------------------------------------------------------------

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Create the thread and store the state, all or nothing. The service makes an id if `session_id` is blank.
        Raises AlreadyExistsError if the session exists, and UnstorableValue.
        """
        now = platform_time.get_time()
        created = moment(now)  # in microseconds, as the database keeps it
        place = SessionNames(app_name, user_id, (session_id or "").strip() or platform_uuid.new_uuid())
        delta = _Delta.of(state or {}, "state")

        async def write(to: Ledger | Transaction) -> str | None:
            own = _of(to, user_id)
            await own.threads.create(place.thread_id, kind=app_name, rules=self._rules, created_at=created)
            await delta.put(to, place)
            empty = await own.messages.append(place.thread_id, [])
            return None if empty.last_seq else empty.mark  # another writer came first: its event is compared

        try:
            # Only state needs a transaction, which takes twice as many statements.
            mark = await settled(in_transaction(self._ledger, write) if state else write(self._ledger))
        except IdConflict as error:
            raise AlreadyExistsError(f"Session with id {place.session_id} already exists.") from error
        (session,) = await self._sessions({place: now if created is None else created.timestamp()})
        _mark(session, mark)
        return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with its events and its state, or None. An event that ADK refuses is left out, and a warning is
        logged with its seq.
        """
        place = SessionNames(app_name, user_id, session_id.strip())
        try:
            history, events = await self._read(place, config)
        except ThreadNotFound:
            return None
        (session,) = await self._sessions({place: 0.0})  # later than the mark, so a newer state makes the session stale
        if not session.last_update_time:  # it has no event, or it was deleted since
            thread = await self._ledger.user(user_id).threads.find(place.thread_id)
            if thread is None:
                return None
            session.last_update_time = thread.created_at.timestamp()
        session.events = events
        _mark(session, history.mark)
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of an app, or of its user, without events. The session that was updated last comes last."""
        sessions = await self._sessions(await self._places(app_name, user_id))
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete the thread for good, with its messages, runs, feedback and state. Does nothing if there is none."""
        place = SessionNames(app_name, user_id, session_id.strip())
        with suppress(ThreadNotFound):
            await settled(self._ledger.user(user_id).threads.delete(place.thread_id))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user in an app, which all of the user's sessions share."""
        scope = state_of_user(app_name, user_id)
        return unnamed((await self._values([scope]))[scope])

    # --- Events -------------------------------------------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store the event and its state, all or nothing, and return the event. A partial event is not stored.

        Raises StaleSessionError if the session is not in its stored state, so that the caller loads it again,
        SessionNotFoundError for a session that is not stored, and UnstorableValue. An event that is stored already, by
        its id, is not stored again, and its state is not written again.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        place = SessionNames(session.app_name, session.user_id, session.id)
        delta = _Delta.of(event.actions.state_delta or {}, "actions.state_delta")
        messages = _rows(event, place, self._rules)
        try:
            appended = await settled(self._append(session, event, place, messages, delta))
        except ThreadNotFound as error:
            raise SessionNotFoundError(f"Session {session.id} not found.") from error
        if appended.replayed and any(known.id == event.id for known in session.events):
            return event
        session.last_update_time = event.timestamp
        _mark(session, appended.mark)
        return cast(Event, self._commit_event_to_session(session, event))

    async def _append(
        self, session: Session, event: Event, place: SessionNames, messages: Sequence[ChatMessage], delta: _Delta
    ) -> Appended:
        mark = session._storage_update_marker or await self._mark_without_marker(session, event, place)  # noqa: SLF001 - ADK's place for it
        try:
            if delta.fits_an_append:
                return await self._of(place).messages.append(
                    place.thread_id,
                    messages,
                    expected=mark,
                    kv={UPDATED: event.timestamp, **named(delta.session)},
                )

            async def write(transaction: Transaction) -> Appended:
                try:
                    own = _of(transaction, place.user_id)
                    appended = await own.messages.append(place.thread_id, messages, expected=mark)
                except VersionConflict as error:  # the caller must learn of it, so it is not tried again
                    raise _stale() from error
                if not appended.replayed:
                    await delta.put(transaction, place, {UPDATED: event.timestamp})
                return appended

            return await in_transaction(self._ledger, write)
        except VersionConflict as error:
            raise _stale() from error

    async def _mark_without_marker(self, session: Session, event: Event, place: SessionNames) -> Mark:
        """The mark of the stored session, for one that was not loaded from here but ends with the same event."""
        history = await self._of(place).messages.history(place.thread_id, Newest(1))
        stored = events_of(with_draft(history))
        last = stored[-1].write().get("id") if stored else None
        known = session.events[-1].id if session.events else None
        if last not in (known, event.id):
            raise _stale()
        return history.mark

    # --- Reading ------------------------------------------------------------------------------------------------------

    def _of(self, place: SessionNames) -> Ledger:
        """The ledger as the user of the session sees it."""
        return self._ledger.user(place.user_id)

    async def _read(self, place: SessionNames, config: GetSessionConfig | None) -> tuple[History, list[Event]]:
        count = None if config is None else config.num_recent_events
        since = None if config is None else config.after_timestamp
        if count == 0 or (count is not None and since is None):
            history, written = await self._last(place, count)
            return history, _events(history, written)
        history = await self._of(place).messages.history(place.thread_id)
        events = _events(history, events_of(history.messages))
        if since is not None:
            events = [event for event in events if event.timestamp >= since]
        return history, events if count is None else events[-count:]

    async def _last(self, place: SessionNames, count: int) -> tuple[History, list[Written]]:
        """The last events of a session. An event of several results is several messages, so some more are read."""
        newest = count + count // 2 + 1
        while True:
            history = await self._of(place).messages.history(place.thread_id, Newest(newest))
            written = events_of(history.messages)
            if len(written) >= count or history.previous_cursor is None:
                return history, written[-count:] if count else []
            newest *= 2

    async def _sessions(self, places: Mapping[SessionNames, float]) -> list[Session]:
        """The sessions without events, each with its state and that of its user and its app. The time with each place
        stands for that of its last event if it has none.
        """
        values = await self._values([scope for place in places for scope in place.scopes])
        return [_session(place, time, *(values[scope] for scope in place.scopes)) for place, time in places.items()]

    async def _values(self, scopes: Sequence[KvScope]) -> dict[KvScope, dict[str, Any]]:
        """All values of each scope; none of a thread that does not exist."""
        values: dict[KvScope, dict[str, Any]] = {}
        for scope, page in (await self._ledger.kv.list_many(scopes, limit=_PAGE)).items():
            values[scope] = {value.key: value.value for value in page}
            while page.next_cursor is not None:
                try:
                    page = await self._ledger.kv.list(scope, limit=_PAGE, cursor=page.next_cursor)
                except ThreadNotFound:  # deleted since
                    page = Page([])
                values[scope] |= {value.key: value.value for value in page}
        return values

    async def _places(self, app_name: str, user_id: str | None) -> dict[SessionNames, float]:
        """The sessions with the time of their creation, without the threads that the service did not create."""
        ledger = self._ledger if user_id is None else self._ledger.user(user_id)
        places: dict[SessionNames, float] = {}
        cursor = None
        while True:
            page = await ledger.threads.list(kind=app_name, archived=None, order="created", limit=_PAGE, cursor=cursor)
            for thread in page:
                place = SessionNames.of_thread(thread.thread_id)
                if place is not None and (place.app_name, place.user_id) == (thread.kind, thread.user_id):
                    places[place] = thread.created_at.timestamp()
            if (cursor := page.next_cursor) is None:
                return places


@dataclass(frozen=True, slots=True)
class _Delta:
    """Changes of state, as JSON, by what they belong to."""

    session: dict[str, Any]
    user: dict[str, Any]
    app: dict[str, Any]

    @classmethod
    def of(cls, state: Mapping[str, Any], path: str) -> _Delta:
        """Raises UnstorableValue."""
        delta = cls({}, {}, {})
        for key, value in state.items():
            if key.startswith(State.TEMP_PREFIX):
                continue
            try:
                plain = to_jsonable_python(value)
            except ValueError as error:  # Pydantic's for a live object
                raise UnstorableValue(f"{path}.{key}", f"it has no JSON ({type(value).__name__})") from error
            for prefix, values in ((State.APP_PREFIX, delta.app), (State.USER_PREFIX, delta.user)):
                if key.startswith(prefix):
                    values[key.removeprefix(prefix)] = plain
                    break
            else:
                delta.session[key] = plain
        return delta

    @property
    def fits_an_append(self) -> bool:
        return not self.user and not self.app and len(self.session) <= _MAX_VALUES

    async def put(self, to: Ledger | Transaction, place: SessionNames, more: Mapping[str, Any] | None = None) -> None:
        """Write all values, and `more` ones of the session. The rows of an app are taken last, since most writers wait
        for each other there.
        """
        of_session = {**(more or {}), **named(self.session)}
        for scope, values in zip(place.scopes, (of_session, named(self.user), named(self.app)), strict=True):
            for key in sorted(values):  # in one order, so that two writers do not wait for each other
                await to.kv.put(scope, key, values[key])


def _rows(event: Event, place: SessionNames, rules: RulesLevel) -> list[ChatMessage]:
    """The messages of the event, under its id, its time and its run. Raises UnstorableValue."""
    if event.actions.agent_state is not None:
        _Delta.of(event.actions.agent_state, "actions.agent_state")
    try:
        messages = get_codec(FORMAT).decode([event], rules=rules).messages
    except DecodeError as error:
        raise UnstorableValue(error.path, error.detail) from error
    return identified(messages, place, event_id=event.id, invocation_id=event.invocation_id, timestamp=event.timestamp)


def _events(history: History, written: Sequence[Written]) -> list[Event]:
    """The events, written without measuring losses."""
    events = []
    for event in written:
        seq = history.messages[event.rows[0]].seq
        try:
            events.append(as_model(event.write(), f"seq {seq}"))
        except EncodeError as error:
            _LOGGER.warning("An event is left out that ADK refuses, at %s", error)
    return events


def _of(to: Ledger | Transaction, user_id: str) -> Ledger | Transaction:
    """The ledger, or the transaction, as the user sees it."""
    return as_user(to, user_id) if isinstance(to, Transaction) else to.user(user_id)


def _mark(session: Session, mark: str | None) -> None:
    session._storage_update_marker = mark  # noqa: SLF001 - ADK's own services keep their marker there


def _session(
    place: SessionNames, time: float, own: Mapping[str, Any], of_user: Mapping[str, Any], of_app: Mapping[str, Any]
) -> Session:
    """The session of the values of its scopes."""
    updated = own.get(UPDATED)
    return Session(
        app_name=place.app_name,
        user_id=place.user_id,
        id=place.session_id,
        state=unnamed(own) | unnamed(of_app, State.APP_PREFIX) | unnamed(of_user, State.USER_PREFIX),
        last_update_time=updated if isinstance(updated, (int, float)) else time,
    )


def _stale() -> StaleSessionError:
    return StaleSessionError("The session was changed since it was loaded; load it again before appending.")
