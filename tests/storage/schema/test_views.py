"""The views: what people read with SQL is what the library returns, with the same columns on both databases."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from chatledger import ChatMessage, Feedback, Ledger, TextPart, Usage
from chatledger.admin import migrate
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.text import to_microseconds
from chatledger.storage.schema.view_columns import VIEW_COLUMNS
from chatledger.storage.schema.views import VIEWS
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.raw import query

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def shown(database: Database, time: datetime) -> object:
    """A time as a view shows it: TIMESTAMPTZ on PostgreSQL, ISO text on SQLite."""
    return time if database.kind == "postgresql" else f"{time:%Y-%m-%dT%H:%M:%S.%fZ}"


COLUMNS = {
    "transcript": (
        "tenant_id thread_id seq role name text tool_names run_id created_at user_id message_id branch state"
    ),
    "calls": (
        "tenant_id thread_id branch seq idx message_id call_id name arguments result_seq result is_error called_at "
        "answered_at"
    ),
    "run_usage": (
        "tenant_id run_id thread_id user_id agent model status input_tokens output_tokens total_tokens cost started_at "
        "ended_at seconds"
    ),
    "usage_by_day": "tenant_id day user_id agent model runs input_tokens output_tokens total_tokens cost",
    "scores": (
        "tenant_id feedback_id run_id thread_id agent model key score author source created_at message_id user_id "
        "call_index"
    ),
}
"""People's queries name them: one is added at the end, and none is taken away."""


async def test_the_columns_stay_in_their_order(database: Database) -> None:
    assert set(COLUMNS) == set(VIEWS)
    for view, columns in COLUMNS.items():
        if database.kind == "sqlite":
            found = [row[1] for row in await query(database, f"PRAGMA table_info({view})")]
        else:
            named = f"table_schema = 'chatledger' AND table_name = '{view}' ORDER BY ordinal_position"
            rows = await query(database, f"SELECT column_name FROM information_schema.columns WHERE {named}")
            found = [row[0] for row in rows]
        assert found == columns.split()


@pytest.mark.plain
async def test_the_transcript_names_user_message_branch_and_state(database: Database, ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    await ledger.messages.append("t", [user("?", message_id="a"), assistant("!", message_id="b")])
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [assistant("on", message_id="c", state="partial")])
    transcript = "SELECT seq, text, user_id, message_id, branch, state FROM transcript ORDER BY seq"
    assert await query(database, transcript) == [
        (1, "?", "ada", "a", 0, "complete"),
        (2, "on", "ada", "c", 1, "partial"),
    ]


SHOWN_CALLS = "SELECT branch, seq, idx, call_id, name, arguments, result_seq, result, is_error FROM calls ORDER BY 2, 3"


@pytest.mark.plain
async def test_a_call_is_shown_with_the_result_on_the_active_path(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    asked = assistant(calls=[call("a", "map", "{}"), call("b", "sky", "{}")], message_id="m", created_at=NOON)
    await ledger.messages.append("t", [user("?"), asked])
    await fork_at(scope_of(ledger), "t", 2, activate=False)
    first = result("b", "rain", created_at=NOON + timedelta(seconds=1.5))
    parts = ChatMessage(role="tool", tool_call_id="b", content=[TextPart(text="su"), TextPart(text="n")], is_error=True)
    await ledger.messages.append("t", [first], branch=0)
    await ledger.messages.append("t", [result("a", "far"), parts], branch=1)
    assert await query(database, SHOWN_CALLS) == [
        (0, 2, 0, "a", "map", "{}", None, None, None),
        (0, 2, 1, "b", "sky", "{}", 3, "rain", None),
    ]
    times = "SELECT tenant_id, thread_id, message_id, called_at, answered_at FROM calls WHERE idx = 1"
    assert await query(database, times) == [
        ("default", "t", "m", shown(database, NOON), shown(database, NOON + timedelta(seconds=1.5)))
    ]
    await ledger.branches.activate("t", 1)
    assert await query(database, SHOWN_CALLS) == [
        (0, 2, 0, "a", "map", "{}", 3, "far", None),
        (0, 2, 1, "b", "sky", "{}", 4, "sun", True),
    ]


async def test_a_call_behind_the_point_of_a_fork_is_not_shown(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [assistant(calls=[call("c")]), result("c")])
    assert [row[:4] for row in await query(database, SHOWN_CALLS)] == [(1, 2, 0, "c")]


async def set_times(database: Database, run_id: str, **times: datetime) -> None:
    """The times of a run, which are those of the calls, as if it had been called then."""
    for column, time in times.items():
        spelled = to_microseconds(time) if database.kind == "sqlite" else f"'{time.isoformat()}'"
        await query(database, f"UPDATE runs SET {column} = {spelled} WHERE run_id = '{run_id}'")


async def used(database: Database, ledger: Ledger) -> None:
    """Three runs of ada's on two days in UTC, and one of bob's without usage."""
    runs = (
        ("r1", "t", "planner", NOON, Usage(input_tokens=10, output_tokens=1, total_tokens=11, cost="0.25")),
        ("r2", "t", "planner", NOON.replace(hour=23, minute=59), Usage(input_tokens=5, cost="0.5")),
        ("r3", "t", "planner", NOON + timedelta(days=1), Usage(output_tokens=7)),
        ("r4", "u", None, NOON, None),
    )
    await ledger.user("ada").threads.create("t")
    await ledger.user("bob").threads.create("u")
    for run_id, thread_id, agent, started_at, usage in runs:
        await ledger.runs.start(thread_id, run_id=run_id, agent=agent, model="m")
        await ledger.runs.finish(run_id, status="completed", usage=usage)
        await set_times(database, run_id, started_at=started_at)


async def test_the_usage_of_runs_is_shown_and_summed_by_day(database: Database, ledger: Ledger) -> None:
    await used(database, ledger)
    usage = (
        "SELECT run_id, thread_id, user_id, agent, model, status, input_tokens, output_tokens, total_tokens, cost,"
        " started_at FROM run_usage ORDER BY run_id"
    )
    at_noon = shown(database, NOON)
    rows = await query(database, usage)
    assert rows[0] == ("r1", "t", "ada", "planner", "m", "completed", 10, 1, 11, 0.25, at_noon)
    assert rows[3] == ("r4", "u", "bob", None, "m", "completed", None, None, None, None, at_noon)
    days = (
        "SELECT day, user_id, agent, model, runs, input_tokens, output_tokens, total_tokens, cost FROM usage_by_day"
        " WHERE tenant_id = 'default' ORDER BY day, user_id"
    )
    first, second = [
        day if database.kind == "postgresql" else day.isoformat() for day in (date(2024, 5, 1), date(2024, 5, 2))
    ]
    assert await query(database, days) == [
        (first, "ada", "planner", "m", 2, 15, 1, 11, 0.75),
        (first, "bob", None, "m", 1, None, None, None, None),
        (second, "ada", "planner", "m", 1, None, 7, None, None),
    ]


async def test_seconds_are_those_between_start_and_end(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.runs.start("t", run_id="r")
    assert await query(database, "SELECT ended_at, seconds FROM run_usage") == [(None, None)]
    await set_times(database, "r", started_at=NOON, ended_at=NOON + timedelta(seconds=1.5))
    assert await query(database, "SELECT ended_at, seconds FROM run_usage") == [
        (shown(database, NOON + timedelta(seconds=1.5)), 1.5)
    ]


async def test_the_scores_are_those_that_count(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn(ids="m"), run_id="r")
    on_call = {"message_id": "m1", "call_index": 1}
    targets: list[dict[str, object]] = [{}, {"message_id": "m4"}, on_call, {"user_id": "ada"}, {"user_id": "bob"}]
    for minute, target in enumerate([*targets, *targets]):
        said = {"run_id": "r", "key": "stars", "score": minute, "created_at": NOON + timedelta(minutes=minute)}
        last = await ledger.feedback.record(Feedback.model_validate(said | target))
    await ledger.feedback.remove(last.feedback_id or "")
    await query(database, "UPDATE feedback SET message_id = NULL WHERE score = 6")  # as an earlier release wrote it
    current = [(one.score, one.message_id, one.user_id, one.call_index) for one in await ledger.feedback.list()]
    assert current == [(8, None, "ada", None), (7, "m1", None, 1), (6, "m4", None, None), (5, None, None, None)]
    scores = "SELECT score, message_id, user_id, call_index FROM scores ORDER BY created_at DESC"
    assert await query(database, scores) == current


async def test_every_column_is_described_with_its_type(pg_database: Database) -> None:
    of_columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'chatledger'"
    assert tuple(VIEW_COLUMNS) == VIEWS
    for view, described in VIEW_COLUMNS.items():
        named = f"{of_columns} AND table_name = '{view}' ORDER BY ordinal_position"
        types = [
            (column, data_type.upper().replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"))
            for column, data_type in await query(pg_database, named)
        ]
        assert types == [(column.name, column.type.postgresql) for column in described.columns]
        assert all(column.meaning.endswith(".") for column in described.columns)


async def test_sqlite_shows_values_of_the_described_types(sqlite_database: Database) -> None:
    async with Ledger.open(sqlite_database.url) as ledger:
        await used(sqlite_database, ledger)
        await ledger.messages.append("t", turn(ids="m"), run_id="r1")
        target = {"message_id": "m1", "call_index": 0, "author": "a", "source": "b", "user_id": "ada"}
        await ledger.feedback.record(Feedback.model_validate({"run_id": "r1", "key": "k", "score": 1, **target}))
    seen = set()
    for view, described in VIEW_COLUMNS.items():
        for column in described.columns:
            typed = f"SELECT DISTINCT upper(typeof({column.name})) FROM {view} WHERE {column.name} IS NOT NULL"
            found = {row[0] for row in await query(sqlite_database, typed)}
            assert found <= {column.type.sqlite}, (view, column.name)
            seen |= {(view, column.name)} if found else set()
    every = {(view, column.name) for view, described in VIEW_COLUMNS.items() for column in described.columns}
    assert every - seen == {("transcript", "name"), ("calls", "is_error")}  # nobody gave one here


async def test_a_role_that_may_read_a_view_may_read_it_after_a_revision(pg_url: str) -> None:
    """A view that was dropped and made again would have lost its grants."""
    database = Database("postgresql", pg_url)
    await asyncio.to_thread(migrate, pg_url, to="0004")
    await query(database, "GRANT SELECT ON transcript, scores TO PUBLIC")
    await query(database, "GRANT SELECT, UPDATE ON scores TO pg_monitor WITH GRANT OPTION")
    for revision in ("head", "0004"):
        await asyncio.to_thread(migrate, pg_url, to=revision)
        for view in ("transcript", "scores"):
            allowed = f"SELECT has_table_privilege('public', 'chatledger.{view}', 'SELECT')"
            assert await query(database, allowed) == [(True,)]
        granted = "SELECT has_table_privilege('pg_monitor', 'chatledger.scores', 'UPDATE WITH GRANT OPTION')"
        assert await query(database, granted) == [(True,)]
