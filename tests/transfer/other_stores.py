"""Stores of frameworks in databases of their own, made by the SQL that each framework's own release sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Ledger
from chatledger.storage.drivers.urls import read_url
from chatledger.transfer.import_other_store import StoreOptions, import_other_store, open_store
from chatledger.transfer.report import ImportReport


@dataclass(frozen=True)
class Source:
    """An empty database, which is no ledger."""

    kind: Literal["sqlite", "postgresql"]
    url: str

    async def run(self, statement: str, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        """Run a statement, for each of the rows if it has parameters."""
        if not rows and ":" in statement:
            return
        engine = create_async_engine(read_url(self.url))
        async with engine.begin() as connection:
            await connection.execute(text(statement), list(rows) or None)
        await engine.dispose()

    async def read(self, statement: str) -> list[Any]:
        engine = create_async_engine(read_url(self.url))
        async with engine.connect() as connection:
            found = list(await connection.execute(text(statement)))
        await engine.dispose()
        return found

    @property
    def serial(self) -> str:
        return "INTEGER PRIMARY KEY AUTOINCREMENT" if self.kind == "sqlite" else "SERIAL PRIMARY KEY"

    @property
    def json(self) -> str:
        """The type of JSON where a framework uses PostgreSQL's."""
        return "TEXT" if self.kind == "sqlite" else "JSONB"

    def as_json(self, name: str) -> str:
        return f":{name}" if self.kind == "sqlite" else f"CAST(:{name} AS JSONB)"

    def time(self, seconds: float) -> Any:
        """A time without its zone, as a parameter."""
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
        return str(moment) if self.kind == "sqlite" else moment


async def moved(
    ledger: Ledger, url: str, options: StoreOptions, on_session: Callable[[int, int], None] = lambda *_: None
) -> ImportReport:
    async with open_store(url, options) as store:
        return await import_other_store(ledger, store, options, on_session=on_session)


NOON = 1_790_000_000.0


# --- OpenAI Agents ----------------------------------------------------------------------------------------------------


async def make_agents(source: Source, table: str = "agent_messages", *, text_type: str = "VARCHAR") -> None:
    """`text_type` is VARCHAR where SQLAlchemySession made the table, and TEXT where SQLiteSession did."""
    await source.run(
        f"CREATE TABLE {table} (id {source.serial}, session_id {text_type} NOT NULL, message_data TEXT NOT NULL, "
        "created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)"
    )


async def add_items(source: Source, session: str, *items: Any, table: str = "agent_messages", at: float = NOON) -> None:
    await source.run(
        f"INSERT INTO {table} (session_id, message_data, created_at) VALUES (:session, :item, :at)",
        [
            {"session": session, "item": item if isinstance(item, str) else json.dumps(item), "at": source.time(at)}
            for item in items
        ],
    )


# --- LangChain --------------------------------------------------------------------------------------------------------


async def make_histories(source: Source) -> None:
    await source.run(f"CREATE TABLE message_store (id {source.serial}, session_id TEXT, message TEXT)")


async def add_messages(source: Source, session: str | None, *messages: Any) -> None:
    await source.run(
        "INSERT INTO message_store (session_id, message) VALUES (:session, :message)",
        [{"session": session, "message": json.dumps(message)} for message in messages],
    )


# --- ADK --------------------------------------------------------------------------------------------------------------


async def make_adk(source: Source, *, schema: str | None = "1", time: str = "TIMESTAMP") -> None:
    """`schema=None` and times as numbers are those of SqliteSessionService."""
    for table, keys in (
        ("app_states", "app_name VARCHAR(128)"),
        ("user_states", "app_name VARCHAR(128), user_id VARCHAR(128)"),
    ):
        await source.run(f"CREATE TABLE {table} ({keys}, state {source.json}, update_time {time})")
    names = "app_name VARCHAR(128), user_id VARCHAR(128)"
    await source.run(
        f"CREATE TABLE sessions ({names}, id VARCHAR(128), state {source.json}, create_time {time}, update_time "
        f"{time}, PRIMARY KEY (app_name, user_id, id))"
    )
    await source.run(
        f"CREATE TABLE events (id VARCHAR(128), {names}, session_id VARCHAR(128), invocation_id VARCHAR(256), "
        f"timestamp {time}, event_data {source.json}, PRIMARY KEY (id, app_name, user_id, session_id))"
    )
    if schema is not None:
        await source.run("CREATE TABLE adk_internal_metadata (key VARCHAR(128) PRIMARY KEY, value VARCHAR(256))")
        await source.run("INSERT INTO adk_internal_metadata VALUES ('schema_version', :version)", [{"version": schema}])


async def add_session(
    source: Source, user: str, session: str, state: Any = None, *, app: str = "demo", at: Any = None
) -> None:
    await source.run(
        f"INSERT INTO sessions VALUES (:app, :user, :id, {source.as_json('state')}, :at, :at)",
        [
            {
                "app": app,
                "user": user,
                "id": session,
                "state": json.dumps(state or {}),
                "at": source.time(NOON) if at is None else at,
            }
        ],
    )


async def add_events(source: Source, user: str, session: str, *events: Any, app: str = "demo", at: Any = None) -> None:
    await source.run(
        "INSERT INTO events VALUES (:id, :app, :user, :session, :invocation, :at, " + source.as_json("event") + ")",
        [
            {
                "id": event["id"],
                "app": app,
                "user": user,
                "session": session,
                "invocation": event["invocation_id"],
                "at": source.time(event["timestamp"]) if at is None else at,
                "event": json.dumps(event),
            }
            for event in events
        ],
    )


async def set_shared_state(source: Source, app_state: Any, user: str, user_state: Any, *, app: str = "demo") -> None:
    await source.run("DELETE FROM app_states")
    await source.run("DELETE FROM user_states")
    at = source.time(NOON)
    await source.run(
        f"INSERT INTO app_states VALUES (:app, {source.as_json('state')}, :at)",
        [{"app": app, "state": json.dumps(app_state), "at": at}],
    )
    await source.run(
        f"INSERT INTO user_states VALUES (:app, :user, {source.as_json('state')}, :at)",
        [{"app": app, "user": user, "state": json.dumps(user_state), "at": at}],
    )
