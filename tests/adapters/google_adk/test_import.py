"""The stores of ADK's own session services, moved in: their readers and ours then give the same sessions."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions import BaseSessionService, DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from chatledger import Ledger
from chatledger.adapters.google_adk import ChatLedgerSessionService
from chatledger.transfer.import_other_store import StoreOptions
from tests.adapters.google_adk.test_differential import APPS, SESSIONS, USERS, Script, Store
from tests.transfer.other_stores import moved

OPTIONS = StoreOptions("adk")
PLACES = list(product(APPS, USERS, SESSIONS))


@pytest.fixture(params=["DatabaseSessionService sqlite", "DatabaseSessionService postgresql", "SqliteSessionService"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Any]:
    """The URL of a database, and a service of ADK's that keeps its sessions there."""
    path = str(tmp_path / "source.db")
    if request.param == "SqliteSessionService":
        return path, SqliteSessionService(path)
    url = f"sqlite+aiosqlite:///{path}"
    if request.param.endswith("postgresql"):
        url = request.getfixturevalue("pg_url").replace("://", "+asyncpg://")
    return url, DatabaseSessionService(url)


async def test_adks_reader_and_ours_return_the_same(ledger: Ledger, made: tuple[str, Any]) -> None:
    url, theirs = made
    script, store = Script(random.Random(5)), Store(theirs)
    await played(script, store, 400, {"create", "append", "append unknown", "get", "list", "delete", "user state"})
    first = await compared(ledger, url, theirs)
    await played(script, store, 60, {"create", "append"})
    later = await compared(ledger, url, theirs)
    await theirs.close()
    assert first > 20
    assert later > first


async def played(script: Script, store: Store, steps: int, names: set[str]) -> None:
    while steps:
        name, given = script.step()
        if name in names:
            steps -= 1
            await store.call(name, given)


async def compared(ledger: Ledger, url: str, theirs: BaseSessionService) -> int:
    report = await moved(ledger, url, OPTIONS)
    assert not report.failures
    ours = ChatLedgerSessionService(ledger)
    events = 0
    for app, user, session in PLACES:
        where = {"app_name": app, "user_id": user, "session_id": session}
        expected, found = await theirs.get_session(**where), await ours.get_session(**where)
        assert told(found) == told(expected)
        events += 0 if expected is None else len(expected.events)
    for app, user in product(APPS, USERS):
        lists = [await one.list_sessions(app_name=app, user_id=user) for one in (theirs, ours)]
        assert [told(one) for one in lists[0].sessions] == [told(one) for one in lists[1].sessions]
        states = [await one.get_user_state(app_name=app, user_id=user) for one in (theirs, ours)]
        assert states[0] == states[1]
    again = await moved(ledger, url, OPTIONS)
    assert (again.unchanged, again.messages, again.values) == (again.threads, 0, 0)
    return events


def told(session: Any) -> Any:
    if session is None:
        return None
    return session.app_name, session.user_id, session.id, session.state, session.events, session.last_update_time


async def test_an_imported_session_continues_in_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    path = str(tmp_path / "source.db")
    theirs = SqliteSessionService(path)
    where = {"app_name": "demo", "user_id": "ada", "session_id": "s"}
    session = await theirs.create_session(**where, state={"step": 1, "user:name": "Ada"})
    script = Script(random.Random(3))
    await theirs.append_event(session, script.event())
    await theirs.close()
    await moved(ledger, path, OPTIONS)
    ours = ChatLedgerSessionService(ledger)
    opened = await ours.get_session(**where)
    assert opened is not None
    await ours.append_event(opened, script.event())
    again = await ours.get_session(**where)
    assert again is not None
    assert (len(again.events), again.state["user:name"]) == (2, "Ada")
