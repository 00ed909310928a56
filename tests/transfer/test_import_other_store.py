"""Import of the stores that frameworks keep themselves, from both databases into both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from chatledger import ChatMessage, InvalidArgument, Ledger, StorageError, VersionConflict
from chatledger.errors import IdConflict
from chatledger.transfer.import_other_store import StoreOptions
from chatledger.transfer.other_stores import adk
from chatledger.transfer.other_stores.database import SourceDatabase, open_source
from chatledger.transfer.other_stores.store import SourceSession
from chatledger.transfer.report import ImportReport
from tests.conftest import Database
from tests.formats.google_adk.samples import RECORDED
from tests.formats.langchain.samples import SAMPLES
from tests.transfer.other_stores import (
    NOON,
    Source,
    add_events,
    add_items,
    add_messages,
    add_session,
    make_adk,
    make_agents,
    make_histories,
    moved,
    set_shared_state,
)

ITEMS: list[Any] = [
    {"role": "user", "content": "How cold is Oslo? \x00 😀"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "4 °C"},
    {"type": "message", "role": "assistant", "id": "m_1", "content": [{"type": "output_text", "text": "4 °C."}]},
]
LATER: list[Any] = [{"role": "user", "content": "And Bergen?"}, {"role": "assistant", "content": "9 °C."}]
EVENTS: list[Any] = [event for events in RECORDED["stored"].values() for event in events]
MESSAGES: list[Any] = [message for messages in SAMPLES.values() for message in messages]


@pytest.fixture(params=["from sqlite", "from postgresql"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    if request.param == "from sqlite":
        return Source("sqlite", str(tmp_path / "source.db"))
    return Source("postgresql", request.getfixturevalue("pg_url"))


@pytest.fixture
def sqlite_source(tmp_path: Path) -> Source:
    return Source("sqlite", str(tmp_path / "source.db"))


@pytest.fixture
async def sqlite_ledger(sqlite_database: Database) -> AsyncIterator[Ledger]:
    async with sqlite_database.open() as opened:
        yield opened


async def imported(ledger: Ledger, source: Source, store: str, **options: Any) -> ImportReport:
    return await moved(ledger, source.url, StoreOptions(store, **options))


def counts(report: ImportReport) -> list[int]:
    return [report.created, report.grown, report.unchanged, report.messages, report.failed]


def why(report: ImportReport) -> str:
    (failure,) = report.failures
    return str(failure).split(", ", 1)[1]


async def stored(ledger: Ledger, thread_id: str, format: str) -> Any:  # noqa: A002
    return (await ledger.messages.history(thread_id)).encode(format, as_="dicts").payload


# --- OpenAI Agents ----------------------------------------------------------------------------------------------------


async def test_sessions_of_openai_agents_become_threads(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "s/1", *ITEMS)
    await add_items(source, "s/2", ITEMS[0])
    await add_items(source, "s/1", *LATER, at=NOON + 60)
    report = await imported(ledger, source, "openai-agents")
    assert counts(report) == [2, 0, 0, 7, 0]
    assert await stored(ledger, "s/1", "openai-responses") == [*ITEMS, *LATER]
    thread = await ledger.threads.get("s/1")
    assert (thread.user_id, thread.kind, thread.rules, thread.metadata) == (None, None, "lenient", None)
    history = await ledger.messages.history("s/1")
    times = [message.created_at.timestamp() - NOON for message in history if message.created_at]
    assert (thread.created_at.timestamp(), times) == (NOON, [0, 0, 0, 0, 60, 60])


async def test_a_second_import_brings_only_what_is_new(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "s", *ITEMS[:3])
    await add_items(source, "t", ITEMS[0])
    assert counts(await imported(ledger, source, "openai-agents")) == [2, 0, 0, 3, 0]
    assert counts(await imported(ledger, source, "openai-agents")) == [0, 0, 2, 0, 0]
    await add_items(source, "s", *ITEMS[3:])
    await add_items(source, "u", ITEMS[0])
    assert counts(await imported(ledger, source, "openai-agents")) == [1, 1, 1, 3, 0]
    assert await stored(ledger, "s", "openai-responses") == ITEMS


async def test_an_import_that_was_killed_goes_on(
    ledger: Ledger, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_agents(source)
    for number in range(6):
        await add_items(source, f"s{number}", *ITEMS)
    done = 0

    def killed(*_arguments: Any) -> None:
        nonlocal done
        done += 1
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await moved(ledger, source.url, StoreOptions("openai-agents"), on_session=killed)
    assert len(await ledger.threads.list()) == 3
    digest = SourceSession.digest

    def dies(session: SourceSession, count: int) -> str:
        """The messages of the fourth session are appended by then."""
        if session.name == "s3":
            raise KeyboardInterrupt
        return digest(session, count)

    with monkeypatch.context() as patch:
        patch.setattr(SourceSession, "digest", dies)
        with pytest.raises(KeyboardInterrupt):
            await imported(ledger, source, "openai-agents")
    assert len(await ledger.threads.list()) == 3  # nothing of the fourth
    assert counts(await imported(ledger, source, "openai-agents")) == [3, 0, 3, 12, 0]
    for number in range(6):
        assert await stored(ledger, f"s{number}", "openai-responses") == ITEMS


async def test_two_imports_at_once_store_nothing_twice(database: Database, source: Source) -> None:
    await make_agents(source)
    for number in range(12):
        await add_items(source, f"s{number}", *ITEMS)
    async with database.open() as one, database.open() as other, asyncio.timeout(60):
        reports = await asyncio.gather(*(imported(ledger, source, "openai-agents") for ledger in (one, other)))
        assert sum(report.created for report in reports) == 12
        assert sum(report.unchanged for report in reports) == 12
        for number in range(12):
            assert await stored(one, f"s{number}", "openai-responses") == ITEMS


async def test_rows_are_read_in_pages(ledger: Ledger, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceDatabase.rows, "__kwdefaults__", {"size": 3})
    await make_agents(source)
    for number in range(5):
        for part in (ITEMS[:2], ITEMS[2:], LATER[:number]):
            await add_items(source, f"s{number}", *part, at=NOON + len(part))
    seen: list[tuple[int, int]] = []
    options = StoreOptions("openai-agents")
    report = await moved(ledger, source.url, options, on_session=lambda done, total: seen.append((done, total)))
    assert (report.created, seen) == (5, [(number, 5) for number in range(6)])
    assert len(await stored(ledger, "s4", "openai-responses")) == 7


async def test_the_source_is_only_read(sqlite_ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "s", *ITEMS)
    async with open_source(source.url) as opened:
        with pytest.raises(StorageError, match=r"read-?only"):
            await opened.all(text("DELETE FROM agent_messages"))  # type: ignore[arg-type]
    assert len(await source.read("SELECT id FROM agent_messages")) == 5


async def test_rows_come_in_the_order_of_the_framework_s_own_reader(sqlite_ledger: Ledger, tmp_path: Path) -> None:
    """SQLAlchemySession sorts by time, as rows that a compaction wrote need it. SQLiteSession sorts by id."""
    for text_type, expected in (("VARCHAR", LATER[::-1]), ("TEXT", LATER)):
        source = Source("sqlite", str(tmp_path / f"{text_type}.db"))
        await make_agents(source, text_type=text_type)
        await add_items(source, text_type, LATER[0], at=NOON + 1)
        await add_items(source, text_type, LATER[1], at=NOON)
        await imported(sqlite_ledger, source, "openai-agents")
        assert await stored(sqlite_ledger, text_type, "openai-responses") == expected


async def test_another_table_an_owner_and_chosen_sessions(ledger: Ledger, source: Source) -> None:
    await make_agents(source, "my_chats")
    for session in ("a", "b", "c"):
        await add_items(source, session, *ITEMS, table="my_chats")
    with pytest.raises(
        StorageError,
        match=r"has no table 'agent_messages' \(its tables: .*\); name the table with --table",
    ):
        await imported(ledger, source, "openai-agents")
    report = await imported(ledger, source, "openai-agents", table="my_chats", user_id="ada", sessions=["a", "c"])
    assert counts(report) == [2, 0, 0, 8, 0]
    assert {thread.thread_id for thread in await ledger.user("ada").threads.list()} == {"a", "c"}
    unknown = await imported(ledger, source, "openai-agents", table="my_chats", user_id="ada", sessions=["a", "d"])
    assert (counts(unknown), why(unknown)) == ([0, 0, 1, 0, 1], "session 'd': the store has no such session")
    again = await imported(ledger, source, "openai-agents", table="my_chats", user_id="bob", sessions=["a"])
    assert "was imported for another user" in why(again)


async def test_tables_in_another_schema_are_found_by_the_search_path(sqlite_ledger: Ledger, pg_url: str) -> None:
    source = Source("postgresql", pg_url)
    await source.run("CREATE SCHEMA chat")
    await make_agents(source, "chat.agent_messages")
    await add_items(source, "s", *ITEMS, table="chat.agent_messages")
    with pytest.raises(StorageError, match="has no table"):
        await imported(sqlite_ledger, source, "openai-agents")
    moved_in = await moved(sqlite_ledger, f"{pg_url}?search_path=chat", StoreOptions("openai-agents"))
    assert counts(moved_in) == [1, 0, 0, 4, 0]


async def test_a_bad_row_refuses_its_session_and_no_other(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "bad", *ITEMS, "{torn", *ITEMS)
    await add_items(source, "good", *ITEMS)
    await add_items(source, "text", *ITEMS, '"no item"')
    report = await imported(ledger, source, "openai-agents")
    assert counts(report) == [1, 0, 0, 4, 2]
    first, second = (str(failure) for failure in report.failures)
    assert first.endswith("session 'bad': table agent_messages, row 6: not JSON")
    assert "session 'text': table agent_messages, row 22: input[0]" in second
    assert [thread.thread_id for thread in await ledger.threads.list()] == ["good"]
    stopped = await imported(ledger, source, "openai-agents", stop_on_error=True)
    assert (stopped.stopped, counts(stopped)) == (True, [0, 0, 0, 0, 1])
    await source.run("DELETE FROM agent_messages WHERE id IN (6, 22)")
    assert counts(await imported(ledger, source, "openai-agents")) == [2, 0, 1, 12, 0]


async def test_a_thread_that_is_not_the_import_s_is_left_alone(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "s", *ITEMS)
    await ledger.messages.append("s", [ChatMessage(role="user", content="Mine.")], create=True)
    report = await imported(ledger, source, "openai-agents")
    assert isinstance(report.failures[0].error, IdConflict)
    assert "exists already and was not imported from this session" in why(report)
    assert len(await ledger.messages.history("s")) == 1


async def test_changed_or_removed_rows_are_reported(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    for session in ("changed", "popped", "same"):
        await add_items(source, session, *ITEMS)
    await imported(ledger, source, "openai-agents")
    await source.run("UPDATE agent_messages SET message_data = '{}' WHERE session_id = 'changed' AND id = 2")
    await source.run("DELETE FROM agent_messages WHERE id = 10")
    await add_items(source, "popped", *LATER)
    report = await imported(ledger, source, "openai-agents")
    assert counts(report) == [0, 0, 1, 0, 2]
    assert all("have been changed or removed in the store" in failure.problem for failure in report.failures)
    assert await stored(ledger, "popped", "openai-responses") == ITEMS
    await ledger.threads.delete("popped")
    assert (await imported(ledger, source, "openai-agents")).created == 1


async def test_a_thread_that_changed_in_the_ledger_stays_and_a_change_on_both_sides_is_reported(
    ledger: Ledger, source: Source
) -> None:
    await make_agents(source)
    await add_items(source, "s", *ITEMS)
    await imported(ledger, source, "openai-agents")
    await ledger.messages.append("s", [ChatMessage(role="user", content="Here.")])
    assert counts(await imported(ledger, source, "openai-agents")) == [0, 0, 1, 0, 0]
    await add_items(source, "s", *LATER)
    report = await imported(ledger, source, "openai-agents")
    assert isinstance(report.failures[0].error, VersionConflict)
    assert "both the session in the store and the thread in the ledger have changed" in why(report)
    assert len(await ledger.messages.history("s")) == 5


async def test_a_dry_run_writes_nothing(ledger: Ledger, source: Source) -> None:
    await make_adk(source)
    await set_shared_state(source, {"tone": "calm"}, "ada", {"name": "Ada"})
    await add_session(source, "ada", "s", {"step": 1})
    await add_events(source, "ada", "s", *EVENTS)
    report = await imported(ledger, source, "adk", dry_run=True)
    assert (report.created, report.values) == (1, 2)
    assert len(await ledger.threads.list()) == 0
    assert len(await ledger.kv.list(("tenant", "google-adk/demo"))) == 0


async def test_sessions_of_erased_threads_are_skipped(ledger: Ledger, source: Source) -> None:
    await make_agents(source)
    await add_items(source, "s", *ITEMS)
    await imported(ledger, source, "openai-agents")
    await ledger.erasures.erase(("thread", "s"))
    report = await imported(ledger, source, "openai-agents")
    assert (counts(report), len(report.erased)) == ([0, 0, 0, 0, 0], 1)


async def test_a_session_with_several_branches_is_not_mixed(sqlite_ledger: Ledger, sqlite_source: Source) -> None:
    await make_agents(sqlite_source, text_type="TEXT")
    await sqlite_source.run("CREATE TABLE message_structure (session_id TEXT, message_id INTEGER, branch_id TEXT)")
    for session, branches in (("one", ["main", "main"]), ("two", ["main", "other"])):
        await add_items(sqlite_source, session, *LATER)
        await sqlite_source.run(
            "INSERT INTO message_structure VALUES (:session, 0, :branch)",
            [{"session": session, "branch": branch} for branch in branches],
        )
    report = await imported(sqlite_ledger, sqlite_source, "openai-agents")
    assert counts(report) == [1, 0, 0, 2, 1]
    assert "session 'two': AdvancedSQLiteSession stores its branches in one list" in why(report)


async def test_a_session_of_more_messages_than_one_append_has(database: Database, sqlite_source: Source) -> None:
    await make_agents(sqlite_source)
    await add_items(sqlite_source, "s", *({"role": "user", "content": str(number)} for number in range(1_200)))
    async with database.open() as ledger:
        assert counts(await imported(ledger, sqlite_source, "openai-agents")) == [1, 0, 0, 1_200, 0]
        assert len(await stored(ledger, "s", "openai-responses")) == 1_200


async def test_times_are_those_of_the_server_s_clock(sqlite_ledger: Ledger, pg_url: str) -> None:
    """SQLAlchemySession lets PostgreSQL write the time, without its zone."""
    source = Source("postgresql", pg_url)
    await source.run(f"ALTER DATABASE {pg_url.rpartition('/')[2]} SET timezone TO 'Asia/Tokyo'")
    await make_agents(source)
    await source.run("INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{}')")
    await imported(sqlite_ledger, source, "openai-agents")
    ((written,),) = await source.read("SELECT CAST(created_at AS TIMESTAMPTZ) FROM agent_messages")
    assert (await sqlite_ledger.threads.get("s")).created_at == written


# --- LangChain --------------------------------------------------------------------------------------------------------


async def test_histories_of_langchain_become_threads(ledger: Ledger, source: Source) -> None:
    await make_histories(source)
    await add_messages(source, "a", *MESSAGES)
    await add_messages(source, None, MESSAGES[0])
    await add_messages(source, "b", *MESSAGES[:2])
    report = await imported(ledger, source, "langchain", user_id="ada")
    assert (counts(report), report.without_time) == ([2, 0, 0, len(MESSAGES) + 2, 0], 2)
    assert await stored(ledger.user("ada"), "a", "langchain") == MESSAGES
    await add_messages(source, "b", *MESSAGES[2:])
    assert counts(await imported(ledger, source, "langchain", user_id="ada"))[:3] == [0, 1, 1]
    assert await stored(ledger, "b", "langchain") == MESSAGES


async def test_histories_by_uuid_in_jsonb_with_times(ledger: Ledger, pg_url: str) -> None:
    """The table of langchain-postgres, which the application names."""
    source = Source("postgresql", pg_url)
    await source.run(
        "CREATE TABLE chat_history (id SERIAL PRIMARY KEY, session_id UUID NOT NULL, message JSONB NOT NULL, "
        "created_at TIMESTAMPTZ NOT NULL DEFAULT NOW())"
    )
    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
    for id_ in ids:
        await source.run(
            "INSERT INTO chat_history (session_id, message, created_at) "
            "VALUES (CAST(:id AS UUID), CAST(:message AS JSONB), '2026-09-21 14:00+02')",
            [{"id": id_, "message": json.dumps(message)} for message in MESSAGES],
        )
    report = await imported(ledger, source, "langchain", table="chat_history", sessions=ids[1:])
    assert (counts(report), report.without_time) == ([2, 0, 0, 2 * len(MESSAGES), 0], 0)
    assert await stored(ledger, ids[1], "langchain") == MESSAGES
    thread = await ledger.threads.get(ids[2])
    assert thread.created_at.isoformat() == "2026-09-21T12:00:00+00:00"


# --- ADK --------------------------------------------------------------------------------------------------------------


async def test_sessions_of_adk_become_threads_of_their_users(ledger: Ledger, source: Source) -> None:
    await make_adk(source)
    await set_shared_state(source, {"tone": "calm"}, "ada", {"name": "Ada"})
    await add_session(source, "ada", " s 1 ", {"step": 1, "list": [1, None]})
    await add_events(source, "ada", " s 1 ", *EVENTS)
    await add_session(source, "b/b", "empty")
    await add_events(source, "nobody", "orphan", EVENTS[0])
    report = await imported(ledger, source, "adk")
    assert (report.created, report.failed, report.values) == (2, 0, 2)
    view = ledger.user("ada")
    expected = sorted(EVENTS, key=lambda event: (event["timestamp"], event["id"]))
    assert await stored(view, "demo/ada/s%201", "google-adk") == expected
    thread = await view.threads.get("demo/ada/s%201")
    assert (thread.kind, thread.user_id, thread.created_at.timestamp()) == ("demo", "ada", NOON)
    values = {one.key: one.value for one in await view.kv.list(("thread", "demo/ada/s%201"))}
    assert values == {"state/step": 1, "state/list": [1, None], "updated": NOON}
    first = (await view.messages.history("demo/ada/s%201")).messages[0]
    assert (first.message_id, first.run_id) == (expected[0]["id"], "demo/ada/s%201/e-1")
    assert await stored(ledger, "demo/b%2Fb/empty", "google-adk") == []
    assert [one.value for one in await ledger.kv.list(("tenant", "google-adk/demo"))] == ["calm"]
    assert [one.value for one in await view.kv.list(("user", "ada", "google-adk/demo"))] == ["Ada"]
    assert counts(await imported(ledger, source, "adk")) == [0, 0, 2, 0, 0]


async def test_a_second_import_adds_new_events_and_state(ledger: Ledger, source: Source) -> None:
    await make_adk(source)
    await set_shared_state(source, {"tone": "calm", "size": 1}, "ada", {})
    await add_session(source, "ada", "s", {"step": 1})
    await imported(ledger, source, "adk")
    await add_events(source, "ada", "s", EVENTS[0])
    await source.run(f"UPDATE sessions SET state = {source.as_json('state')}", [{"state": '{"step": 2}'}])
    await set_shared_state(source, {"tone": "brisk", "size": 2}, "ada", {"name": "Ada"})
    await ledger.kv.put(("tenant", "google-adk/demo"), "state/size", 9)
    report = await imported(ledger, source, "adk")
    assert counts(report) == [0, 1, 0, 1, 1]
    assert "the store has a new value of 'state/size', but the ledger holds another one" in why(report)
    step = await ledger.kv.get(("thread", "demo/ada/s"), "state/step")
    name = await ledger.kv.get(("user", "ada", "google-adk/demo"), "state/name")
    assert (step and step.value, name and name.value) == (2, "Ada")
    tone = await ledger.kv.get(("tenant", "google-adk/demo"), "state/tone")
    assert tone is not None
    assert tone.value == "calm"  # all of a state, or nothing


async def test_a_second_import_adds_new_state_without_events(ledger: Ledger, source: Source) -> None:
    await make_adk(source)
    await add_session(source, "ada", "s", {"step": 1})
    await add_events(source, "ada", "s", EVENTS[0])
    await imported(ledger, source, "adk")
    await source.run(f"UPDATE sessions SET state = {source.as_json('state')}", [{"state": '{"step": 2}'}])
    assert counts(await imported(ledger, source, "adk")) == [0, 1, 0, 0, 0]
    step = await ledger.kv.get(("thread", "demo/ada/s"), "state/step")
    assert step is not None
    assert step.value == 2


async def test_sessions_whose_names_differ_in_spaces_stay_apart(ledger: Ledger, source: Source) -> None:
    """ADK's service in a database keeps spaces around an id, and its other services and ours strip them."""
    await make_adk(source)
    await add_session(source, "ada", "s")
    await add_session(source, "ada", " s")
    for created in (1, 0):
        report = await imported(ledger, source, "adk")
        assert (report.created, report.failed) == (created, 1)
        assert "exists already and was not imported from this session" in why(report)


async def test_times_as_numbers_are_those_of_the_other_sqlite_service(
    sqlite_ledger: Ledger, sqlite_source: Source
) -> None:
    """SqliteSessionService sorts events of one time as they were added, the other service by their ids."""
    await make_adk(sqlite_source, schema=None, time="REAL")
    await add_session(sqlite_source, "ada", "s", at=NOON + 0.25)
    events = [{**EVENTS[0], "id": id_, "timestamp": NOON} for id_ in ("z", "a")]
    await add_events(sqlite_source, "ada", "s", *events, at=NOON)
    await imported(sqlite_ledger, sqlite_source, "adk")
    assert [one["id"] for one in await stored(sqlite_ledger, "demo/ada/s", "google-adk")] == ["z", "a"]
    updated = await sqlite_ledger.kv.get(("thread", "demo/ada/s"), "updated")
    assert updated is not None
    assert updated.value == NOON + 0.25


async def test_sessions_of_adk_are_read_in_pages(
    sqlite_ledger: Ledger, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adk, "_AT_ONCE", 2)
    await make_adk(source)
    for number in range(5):
        await add_session(source, f"u{number % 2}", f"s{number}")
        await add_events(source, f"u{number % 2}", f"s{number}", *EVENTS[: number + 1])
    report = await imported(sqlite_ledger, source, "adk", sessions=["s0", "s3", "s4", "s9"])
    assert (report.created, why(report)) == (3, "session 's9': the store has no such session")
    assert len(await stored(sqlite_ledger, "demo/u1/s3", "google-adk")) == 4


async def test_pickles_are_never_read(ledger: Ledger, source: Source) -> None:
    await source.run("CREATE TABLE sessions (app_name VARCHAR, user_id VARCHAR, id VARCHAR, state TEXT)")
    await source.run("CREATE TABLE events (id VARCHAR, actions TEXT, content TEXT)")
    with pytest.raises(StorageError, match=r"events hold pickles.*adk migrate session --source_db_url"):
        await imported(ledger, source, "adk")


async def test_a_later_schema_is_refused(ledger: Ledger, source: Source) -> None:
    await make_adk(source, schema="2")
    with pytest.raises(StorageError, match="ADK's schema 2, but this release reads only schema 1"):
        await imported(ledger, source, "adk")


async def test_a_bad_event_and_a_bad_state_refuse_their_sessions(sqlite_ledger: Ledger, sqlite_source: Source) -> None:
    await make_adk(sqlite_source)
    await set_shared_state(sqlite_source, [1], "ada", {"name": "Ada"})
    for session in ("event", "good", "list", "state"):
        await add_session(sqlite_source, "ada", session)
        await add_events(sqlite_source, "ada", session, *EVENTS[:2])
    await sqlite_source.run("UPDATE events SET event_data = '{' WHERE session_id = 'event' AND id = 'event-2'")
    await sqlite_source.run("UPDATE events SET event_data = '[]' WHERE session_id = 'list' AND id = 'event-2'")
    await sqlite_source.run("UPDATE sessions SET state = 'null' WHERE id = 'state'")
    report = await imported(sqlite_ledger, sqlite_source, "adk")
    assert report.created == 1
    assert [str(failure).split(", ", 1)[1] for failure in report.failures] == [
        "state of app 'demo': the state must be an object, not a list",
        "session 'demo/ada/event': table events, row event-2: not JSON",
        "session 'demo/ada/list': table events, row event-2: an event is expected, not a list",
        "session 'demo/ada/state': table sessions: the state must be an object, not null",
    ]


# --- Sources that are none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["openai-agents", "langchain", "adk"])
async def test_a_database_without_the_store_is_refused(sqlite_ledger: Ledger, source: Source, store: str) -> None:
    await source.run("CREATE TABLE other (id INTEGER)")
    with pytest.raises(StorageError, match="has no table"):
        await imported(sqlite_ledger, source, store)
    await source.run("CREATE TABLE agent_messages (id INTEGER)")
    with pytest.raises(StorageError, match="has no column 'session_id'"):
        await imported(sqlite_ledger, source, "openai-agents")


async def test_a_file_that_is_no_database_is_reported(sqlite_ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no database"):
        await moved(sqlite_ledger, str(tmp_path / "none.db"), StoreOptions("langchain"))
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("no database at all, but a text that is long enough" * 100)
    with pytest.raises(StorageError, match="not a database"):
        await moved(sqlite_ledger, str(tmp_path / "text.db"), StoreOptions("langchain"))
    with pytest.raises(StorageError):
        await moved(sqlite_ledger, "postgresql://127.0.0.1:9/none", StoreOptions("langchain"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (StoreOptions("adk", table="t"), "table cannot be chosen"),
        (StoreOptions("adk", user_id="ada"), "user_id cannot be given"),
        (StoreOptions("other"), "store must be one of openai-agents, langchain, adk"),
    ],
)
async def test_options_that_do_not_go_together(
    sqlite_ledger: Ledger, sqlite_source: Source, options: StoreOptions, said: str
) -> None:
    await sqlite_source.run("CREATE TABLE other (id INTEGER)")
    with pytest.raises(InvalidArgument, match=said):
        await moved(sqlite_ledger, sqlite_source.url, options)
