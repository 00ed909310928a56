"""The session service, call by call: what it stores and refuses, and which user sees what."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.platform import time as platform_time
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from chatledger import Ledger, Payload
from chatledger.adapters.google_adk import ChatLedgerSessionService, UnstorableValue
from tests.adapters.google_adk.events import CALL, SECOND, content, result
from tests.conftest import Database
from tests.faults.proxy import proxied

WHO: dict[str, Any] = {"app_name": "demo", "user_id": "ada"}


def said(text: str, *, time: float = 5.0, author: str = "user", **actions: Any) -> Event:
    parts = [types.Part(text=text)]
    role = "user" if author == "user" else "model"
    return Event(
        author=author,
        invocation_id="e-1",
        timestamp=time,
        content=types.Content(role=role, parts=parts),
        actions=EventActions(**actions),
    )


def texts(session: Any) -> list[str]:
    return [event.content.parts[0].text for event in session.events]


async def loaded(service: ChatLedgerSessionService, session_id: str = "s", **config: Any) -> Any:
    wanted = GetSessionConfig(**config) if config else None
    return await service.get_session(**WHO, session_id=session_id, config=wanted)


async def test_a_session_is_made_once_and_a_blank_id_is_minted(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    first = await service.create_session(**WHO, session_id=" s ", state={"a": 1, "user:b": 2, "app:c": 3, "temp:d": 4})
    assert (first.id, first.state) == ("s", {"a": 1, "user:b": 2, "app:c": 3})
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**WHO, session_id="s", state={"a": 9, "app:c": 9})
    assert (await loaded(service)).state == first.state
    minted = await service.create_session(**WHO, session_id="  ")
    assert minted.id.strip()
    assert minted.state == {"user:b": 2, "app:c": 3}
    assert [one.id for one in (await service.list_sessions(**WHO)).sessions] == ["s", minted.id]
    assert await service.get_session(**WHO, session_id="other") is None


async def test_a_session_is_read_by_a_number_of_events(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    for number in range(4):
        await service.append_event(session, said(str(number), time=float(number)))
    calls = content("user", result(CALL, {"result": "a"}), result(SECOND, {"result": "b"}))
    both = await service.append_event(session, Event(author="helper", timestamp=4.0, content=calls))
    last = await service.append_event(session, said("last", time=5.0))
    assert (await loaded(service)).events == session.events
    assert (await loaded(service, num_recent_events=0)).events == []
    assert (await loaded(service, num_recent_events=1)).events == [last]
    assert (await loaded(service, num_recent_events=2)).events == [both, last]
    assert len((await loaded(service, num_recent_events=3)).events) == 3
    assert (await loaded(service, after_timestamp=4.0)).events == [both, last]
    assert (await loaded(service, after_timestamp=1.0, num_recent_events=1)).events == [last]
    assert (await loaded(service)).last_update_time == 5.0


async def test_a_stale_session_is_told_from_a_current_one_though_times_are_equal(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    await service.create_session(**WHO, session_id="s")
    first, second = await loaded(service), await loaded(service)
    await service.append_event(first, said("one"))
    with pytest.raises(ValueError, match="load it again"):
        await service.append_event(second, said("two", state_delta={"lost": 1}))
    with pytest.raises(ValueError, match="load it again"):
        await service.append_event(second, said("two", state_delta={"app:lost": 1}))
    assert (texts(second), (await loaded(service)).state) == ([], {})
    await service.append_event(first, said("three"))
    assert texts(await loaded(service)) == ["one", "three"]


async def test_a_session_without_a_marker_is_compared_by_its_last_event(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    event = await service.append_event(session, said("one"))
    known = Session(**WHO, id="s", events=[event], last_update_time=5.0)
    await service.append_event(known, said("two"))
    with pytest.raises(ValueError, match="load it again"):
        await service.append_event(Session(**WHO, id="s", events=[event]), said("three"))
    assert texts(await loaded(service)) == ["one", "two"]


async def test_a_session_recreated_after_its_deletion_is_another_session(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s", state={"old": 1})
    await service.delete_session(**WHO, session_id="s")
    await service.delete_session(**WHO, session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("lost"))
    again = await service.create_session(**WHO, session_id="s")
    with pytest.raises(ValueError, match="load it again"):
        await service.append_event(session, said("lost"))
    assert (again.state, (await loaded(service)).events) == ({}, [])


async def test_a_repeated_event_is_stored_once_and_its_state_too(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    event = said("one", state_delta={"n": 1, "app:n": 1})
    await service.append_event(session, event)
    await service.append_event(session, said("two", state_delta={"n": 2, "app:n": 2}))
    await service.append_event(session, event)
    unaware = await loaded(service, num_recent_events=0)
    await service.append_event(unaware, event.model_copy(deep=True))
    now = await loaded(service)
    assert (texts(now), now.state) == (["one", "two"], {"n": 2, "app:n": 2})
    assert texts(session) == ["one", "two"]


async def test_state_is_stored_in_its_scope(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    many = {f"k{number}": number for number in range(100)}
    await service.append_event(session, said("one", state_delta={"": None, "a": [1], "temp:t": 1, **many}))
    await service.append_event(session, said("two", state_delta={"user:u": {"x": 1}, "app:p": "é\x00", "a": [2]}))
    expected = {"": None, "a": [2], **many, "user:u": {"x": 1}, "app:p": "é\x00"}
    assert (await loaded(service)).state == expected
    assert session.state == {**expected, "temp:t": 1}
    (listed,) = (await service.list_sessions(**WHO)).sessions
    assert (listed.state, listed.events, listed.last_update_time) == (expected, [], 5.0)
    other = await service.create_session(app_name="demo", user_id="eve")
    assert other.state == {"app:p": "é\x00"}
    elsewhere = await service.create_session(app_name="other", user_id="ada")
    assert elsewhere.state == {}
    assert await service.get_user_state(**WHO) == {"u": {"x": 1}}


async def test_an_event_between_the_making_of_a_session_and_its_mark_makes_it_stale(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = ChatLedgerSessionService(ledger)
    create = type(ledger.threads).create

    async def hurried(threads: Any, thread_id: str, **given: Any) -> Any:
        made = await create(threads, thread_id, **given)
        await ledger.messages.append(thread_id, Payload([said("first").model_dump()], "google-adk"))
        return made

    monkeypatch.setattr(type(ledger.threads), "create", hurried)
    session = await service.create_session(**WHO, session_id="s")
    with pytest.raises(ValueError, match="load it again"):
        await service.append_event(session, said("second"))
    assert texts(await loaded(service)) == ["first"]


async def test_a_session_without_events_was_updated_when_it_was_made(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock has more decimals than a database."""
    service = ChatLedgerSessionService(ledger)
    for time in (1_790_000_001.123_456_7, 1_790_000_001.0, 1_790_000_001.999_999_8):
        monkeypatch.setattr(platform_time, "get_time", lambda time=time: time)
        made = await service.create_session(**WHO, session_id=str(time))
        read = await service.get_session(**WHO, session_id=str(time))
        assert read is not None
        listed = {one.id: one for one in (await service.list_sessions(**WHO)).sessions}[str(time)]
        assert made.last_update_time == read.last_update_time == listed.last_update_time
        assert made.last_update_time == pytest.approx(time, abs=1e-6)


async def test_more_state_than_a_page_of_values_is_read_whole(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    many = {f"k{number}": number for number in range(1_005)}
    await service.create_session(**WHO, session_id="s", state=many)
    assert (await loaded(service)).state == many


async def test_sessions_are_read_in_few_statements(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        service = ChatLedgerSessionService(ledger)
        for number in range(20):
            state = {"user:u": 1, "app:a": 1, "s": number}
            await service.create_session(**WHO, session_id=f"{number}", state=state)
        await service.append_event(await loaded(service, "7"), said("Hi"))
        for _ in range(3):  # the first ones prepare the statements
            before = proxy.round_trips
            assert (await loaded(service, "7")).state == {"user:u": 1, "app:a": 1, "s": 7}
            between = proxy.round_trips
            assert len((await service.list_sessions(**WHO)).sessions) == 20
        assert (between - before, proxy.round_trips - between) == (2, 2)


async def test_a_partial_event_is_not_stored(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    piece = said("on")
    piece.partial = True
    assert await service.append_event(session, piece) is piece
    assert (session.events, (await loaded(service)).events) == ([], [])


@pytest.mark.parametrize("key", ["a", "user:a", "app:a"])
async def test_a_live_object_is_refused_with_its_place_and_nothing_is_written(ledger: Ledger, key: str) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    with pytest.raises(UnstorableValue) as refused:
        await service.append_event(session, said("one", state_delta={"ok": 1, key: object()}))
    assert refused.value.path == f"actions.state_delta.{key}"
    with pytest.raises(TypeError):
        await service.create_session(**WHO, session_id="t", state={key: object()})
    now = await loaded(service)
    assert (now.events, now.state, await loaded(service, "t")) == ([], {}, None)
    await service.append_event(session, said("two"))


async def test_users_are_kept_apart(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    mine = await service.create_session(**WHO, session_id="s", state={"secret": 1})
    await service.append_event(mine, said("secret"))
    eve: dict[str, Any] = {"app_name": "demo", "user_id": "eve"}
    assert await service.get_session(**eve, session_id="s") is None
    assert (await service.list_sessions(**eve)).sessions == []
    await service.delete_session(**eve, session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(**eve, id="s", events=mine.events), said("forged"))
    same = await service.create_session(**eve, session_id="s")
    assert (same.state, same.events) == ({}, [])
    tricky = await service.create_session(app_name="demo", user_id="ada/s", session_id="x")
    assert (await service.get_session(app_name="demo", user_id="ada", session_id="s/x")) is None
    assert texts(await loaded(service)) == ["secret"]
    listed = (await service.list_sessions(app_name="demo")).sessions
    assert {(one.user_id, one.id) for one in listed} == {("ada", "s"), ("eve", "s"), ("ada/s", tricky.id)}


async def test_an_event_that_adk_refuses_does_not_hide_the_others(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    await service.append_event(session, said("one"))
    refused = {"id": "x", "invocation_id": "e", "author": "helper", "actions": {"of tomorrow": 1}}
    await ledger.messages.append("demo/ada/s", Payload([refused], "google-adk"))
    now = await loaded(service)
    await service.append_event(now, said("two"))
    with caplog.at_level(logging.WARNING):
        assert texts(await loaded(service)) == ["one", "two"]
    assert "seq 2" in caplog.text


async def test_a_cancelled_append_is_stored(ledger: Ledger) -> None:
    service = ChatLedgerSessionService(ledger)
    session = await service.create_session(**WHO, session_id="s")
    task = asyncio.create_task(service.append_event(session, said("one", state_delta={"app:n": 1})))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    now = await loaded(service)
    assert (texts(now), now.state) == (["one"], {"app:n": 1})


async def test_sixteen_writers_lose_nothing(database: Database) -> None:
    """Each loads the session, appends, and loads again where another writer came first."""
    async with database.open() as one, database.open() as two:
        services = [ChatLedgerSessionService(one), ChatLedgerSessionService(two)]
        await services[0].create_session(**WHO, session_id="s")
        tries = 0

        async def write(writer: int) -> None:
            nonlocal tries
            service = services[writer % 2]
            for number in range(4):
                event = said(f"{writer}/{number}", state_delta={f"w{writer}": number, "app:last": writer})
                while True:
                    tries += 1
                    session = await loaded(service, num_recent_events=0)
                    try:
                        await service.append_event(session, event)
                    except ValueError:
                        continue
                    break

        await asyncio.wait_for(asyncio.gather(*map(write, range(16))), 120)
        now = await loaded(services[1])
        assert sorted(texts(now)) == sorted(f"{writer}/{number}" for writer in range(16) for number in range(4))
        assert all(now.state[f"w{writer}"] == 3 for writer in range(16))
        for writer in range(16):
            own = [text for text in texts(now) if text.startswith(f"{writer}/")]
            assert own == [f"{writer}/{number}" for number in range(4)]
