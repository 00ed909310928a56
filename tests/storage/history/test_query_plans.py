"""The reads of each call: rows by table, counted by PostgreSQL itself, and the steps that SQLite plans.

Nothing is timed. A call that reads more than it gives, one more round trip or one more visit of a driver's thread is a
failure; so is one that reads more of a thread for being long.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from chatledger import Appended, Ledger
from chatledger.errors import RunConflict
from chatledger.ids import new_id
from chatledger.repositories import scope_of
from chatledger.storage.drivers import sqlite
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import proxied
from tests.postgres import Server
from tests.storage.seeded import LONG, OTHERS, ROWS, SHORT, seed_postgresql, seed_sqlite
from tests.windows import read as read_window

Work = Callable[[Ledger], Awaitable[Any]]


def append_to(thread: str) -> Work:
    return lambda ledger: ledger.messages.append(thread, turn(), run_id=f"r{thread[1:]}")


def history(**window: Any) -> Work:
    return lambda ledger: read_window(ledger, LONG, **window)


APPENDS = {"to a long thread": append_to(LONG), "to a short thread": append_to(SHORT)}
HISTORIES = {
    "a page": history(limit=50, after=5_000, branch=0),
    "a page of many": history(limit=500, after=5_000, branch=0),
    "newest": history(newest=52),  # begins between two results
    "last turns": history(last_turns=10),
}
LISTS: dict[str, Work] = {
    "all threads": lambda ledger: ledger.threads.list(limit=50),
    "threads of a user": lambda ledger: ledger.user("ada").threads.list(limit=50),
    "oldest first": lambda ledger: ledger.threads.list(newest_first=False, limit=50),
    "by creation": lambda ledger: ledger.threads.list(order="created", archived=None, limit=50),
    "of a user by creation": lambda ledger: ledger.user("ada").threads.list(
        order="created", newest_first=False, limit=50
    ),
}
FORKS: Work = lambda ledger: ledger.threads.list(limit=20)  # noqa: E731
LEFT: dict[str, Work] = {"partials": lambda ledger: ledger.drafts.list(abandoned_for=0)}
SUMMARIES: dict[str, Work] = {
    "all": lambda ledger: ledger.feedback.summary(),
    "of an agent": lambda ledger: ledger.feedback.summary(agent="guide"),
    "since": lambda ledger: ledger.feedback.summary(since=datetime(1970, 1, 1, 2, tzinfo=UTC)),
}


def named(works: dict[str, Work]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("work", works.values(), ids=works.keys())


# --- PostgreSQL: rows -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pg_seeded_template(pg_server: Server, pg_template: str) -> Iterator[str]:
    with pg_server.database(template=pg_template) as url:
        seed_postgresql(url)
        yield url


@pytest.fixture
def pg_read(pg_seeded_template: str) -> Database:
    """For calls that change nothing."""
    return Database("postgresql", pg_seeded_template)


@pytest.fixture
def pg_seeded(pg_server: Server, pg_seeded_template: str) -> Iterator[Database]:
    with pg_server.database(template=pg_seeded_template) as url:
        yield Database("postgresql", url)


async def rows_read(database: Database, work: Work) -> Counter[str]:
    """Rows that one call reads of each table, those included that it then drops and those that its foreign keys ask
    for: what a third call adds to two, so that what is looked up once for a connection does not count.
    """
    twice = await _rows_of(database, work, 2)
    return (await _rows_of(database, work, 3)) - twice


async def _rows_of(database: Database, work: Work, times: int) -> Counter[str]:
    before = await _counters(database)
    async with database.open() as ledger:
        for _ in range(times):
            await work(ledger)
    return await _counters(database) - before


_READ = """
SELECT regexp_replace(t.relname, '_tenants_\\d+$', ''),
  sum(t.seq_tup_read + COALESCE((SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid), 0))
FROM pg_stat_user_tables t WHERE t.schemaname = 'chatledger' AND t.relname <> 'chatledger_version' GROUP BY 1
"""
"""By table, whatever partition the rows are in."""
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def _counters(database: Database) -> Counter[str]:
    """Rows read so far."""
    return Counter({table: int(rows) for table, rows in await asked(database, _READ)})


async def asked(database: Database, statement: str) -> list[Any]:
    """Of the server's counters. A process of it adds what it counted when it ends, so all others must have ended."""
    connection = await asyncpg.connect(database.url)
    try:
        async with asyncio.timeout(30):
            while await connection.fetchval(_OTHERS):  # noqa: ASYNC110 - the server tells nobody of it
                await asyncio.sleep(0.005)
        return list(await connection.fetch(statement))
    finally:
        await connection.close()


@pytest.mark.plain
@pytest.mark.one_statement
async def test_an_append_reads_its_tip_and_the_rows_that_its_keys_point_at(pg_seeded: Database) -> None:
    """The tip is read to be written; the rest are checks of foreign keys, one row for each row that is inserted."""
    long, short = [await rows_read(pg_seeded, work) for work in APPENDS.values()]
    assert long.pop("threads", 0) <= 6  # the time of the last activity is moved only now and then
    assert short.pop("threads", 0) <= 6
    assert long == short
    assert set(long) <= {"branches", "runs", "messages", "tool_calls"}
    assert long["messages"] <= 4  # two calls and two results stand in messages
    assert long["tool_calls"] <= 2
    assert long["branches"] <= 1 + 5
    assert long["runs"] <= 1 + 5


@pytest.mark.plain
async def test_a_group_with_repeats_reads_a_few_rows_for_each_append(pg_seeded: Database) -> None:
    """It looks for ids and runs by value, in a thread of 10,000 messages as in a short one."""

    async def group(ledger: Ledger) -> None:
        """One append ahead, then new messages, repeats and a run of another thread in one group."""
        threads = [LONG, SHORT, *(f"t{number}" for number in range(3, 11))]
        for thread in threads:  # remembers the tips
            await ledger.messages.append(thread, [assistant("before")])
        repeat = user("text 1", message_id="m1", run_id="r1")
        calls = [ledger.messages.append(one, [assistant("next", message_id=new_id())]) for one in threads]
        calls += [ledger.messages.append(LONG, [repeat]), ledger.messages.append("t3", [assistant("?")], run_id="r9")]
        done = await asyncio.gather(ledger.messages.append("t20", [assistant("ahead")]), *calls, return_exceptions=True)
        assert [type(one) for one in done] == [Appended] * 12 + [RunConflict]
        assert done[-2].replayed  # type: ignore[union-attr]

    read = await rows_read(pg_seeded, group)
    appends = 10 + 13
    assert read["messages"] <= 2 * appends
    assert read["branches"] <= 6 * appends
    assert read["threads"] <= 4 * appends
    assert read["runs"] <= 6


@named(HISTORIES)
@pytest.mark.plain
async def test_a_history_reads_the_rows_that_it_returns(pg_read: Database, work: Work) -> None:
    async with pg_read.open() as ledger:
        messages = (await work(ledger)).messages
    read = await rows_read(pg_read, work)
    calls = sum(len(message.tool_calls or ()) for message in messages)
    looked_up = 2 if work is HISTORIES["newest"] else 0  # results, for calls before the window and before what they add
    looked_for = 2 if work is HISTORIES["last turns"] else 1  # where turns begin is read before what they hold
    assert len(messages) <= read["messages"] <= len(messages) * looked_for
    assert read["tool_calls"] == calls
    assert read["threads"] + read["branches"] <= 2
    assert read["tool_results"] <= looked_up * sum(message.role == "tool" for message in messages)
    assert set(read) <= {"threads", "branches", "messages", "tool_calls", "tool_results"}


@named(LISTS)
async def test_a_list_of_threads_reads_its_page(pg_read: Database, work: Work) -> None:
    read = await rows_read(pg_read, work)
    assert read["threads"] == 51  # one more says whether there is another page
    assert read["branches"] <= 51
    assert read["messages"] <= 51
    assert set(read) <= {"threads", "branches", "messages"}


async def fork_threads(ledger: Ledger) -> None:
    """Twenty threads, the newest, become forks without messages of their own."""
    for number in range(3, 23):
        await ledger.messages.append(f"t{number}", turn())
        await fork_at(scope_of(ledger), f"t{number}", 5)
    assert {(one.active_branch, one.preview) for one in await FORKS(ledger)} == {(1, "It is sunny in both.")}


@pytest.mark.plain
async def test_a_page_of_fresh_forks_reads_its_rows_in_one_statement(pg_seeded: Database) -> None:
    async with pg_seeded.open() as ledger:
        await fork_threads(ledger)
    assert await round_trips(pg_seeded, FORKS) == 1
    read = await rows_read(pg_seeded, FORKS)
    assert (read["threads"], read["branches"]) == (21, 21)
    assert read["messages"] <= 21


FIND: Work = lambda ledger: ledger.messages.find("m9000")  # noqa: E731


@pytest.mark.plain
async def test_a_message_is_found_in_all_threads_by_its_id_alone(pg_read: Database) -> None:
    async with pg_read.open() as ledger:
        assert [(one.thread_id, one.seq) for one in await FIND(ledger)] == [(LONG, 9_000)]
    assert await rows_read(pg_read, FIND) == Counter({"messages": 2})  # its place, and itself


@named(SUMMARIES)
async def test_a_summary_reads_each_score_once(pg_read: Database, work: Work) -> None:
    """It also reads scores of other tenants if there are so few that reading all is quicker than searching."""
    read = await rows_read(pg_read, work)
    assert read["feedback"] <= ROWS + OTHERS
    assert read["runs"] <= (ROWS + OTHERS if work is SUMMARIES["of an agent"] else 0)
    assert set(read) <= {"feedback", "runs"}


async def leave_partials(database: Database, *threads: str) -> None:
    async with database.open() as ledger:
        for thread in threads:
            await ledger.messages.append(thread, [assistant("So", state="partial")])


async def test_partial_messages_are_found_without_reading_others(pg_seeded: Database) -> None:
    await leave_partials(pg_seeded, "t3", "t4")
    read = await rows_read(pg_seeded, LEFT["partials"])
    assert 1 <= read["branches"] <= 2  # a plan may read each by the index and again by its place
    assert set(read) <= {"branches", "messages"}
    assert read["messages"] <= 2


async def test_an_append_leaves_the_index_of_partial_messages_alone(pg_seeded: Database) -> None:
    """Its update of the branch's row stays HOT: nothing is written to any index of the table."""
    updates = "SELECT sum(n_tup_upd), sum(n_tup_hot_upd) FROM pg_stat_user_tables WHERE relname LIKE 'branches%'"
    (before,) = await asked(pg_seeded, updates)
    async with pg_seeded.open() as ledger:
        for _ in range(10):
            await ledger.messages.append("t5", turn())
    (after,) = await asked(pg_seeded, updates)
    assert [after[0] - before[0], after[1] - before[1]] == [10, 10]


async def test_a_scan_is_counted(pg_seeded: Database) -> None:
    """That the tests above can fail: without its index a page reads all threads."""
    connection = await asyncpg.connect(pg_seeded.url)
    names = await connection.fetch(
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'chatledger' AND tablename = 'threads'"
        " AND indexdef LIKE '%(tenant_id, active_at%'"
    )
    for (name,) in names:
        await connection.execute(f'DROP INDEX chatledger."{name}"')
    await connection.close()
    assert (await rows_read(pg_seeded, LISTS["all threads"]))["threads"] >= ROWS


# --- PostgreSQL: round trips ------------------------------------------------------------------------------------------


async def round_trips(database: Database, work: Work) -> int:
    """Of a call whose statements are prepared and whose tip is cached."""
    async with proxied(database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await work(ledger)
        await work(ledger)
        before = proxy.round_trips
        await work(ledger)
        return proxy.round_trips - before


@named(APPENDS)
async def test_an_append_is_one_round_trip(pg_seeded: Database, work: Work) -> None:
    assert await round_trips(pg_seeded, work) == 1


@named({name: HISTORIES[name] for name in ("a page", "newest")} | LISTS | SUMMARIES)
async def test_a_small_read_is_one_round_trip(pg_read: Database, work: Work) -> None:
    assert await round_trips(pg_read, work) == 1


async def test_a_large_page_is_one_transaction(pg_read: Database) -> None:
    trips = await round_trips(pg_read, HISTORIES["a page of many"])
    assert trips <= 6  # BEGIN, the branch row, a scan of each of three tables, COMMIT


async def test_the_last_turns_are_one_transaction(pg_read: Database) -> None:
    trips = await round_trips(pg_read, HISTORIES["last turns"])
    assert trips <= 7  # as a page, and where the turns begin


# --- SQLite -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sqlite_seeded_template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seeded") / "ledger.db"
    shutil.copyfile(sqlite_template, path)
    seed_sqlite(path)
    return path


@pytest.fixture
def sqlite_seeded(sqlite_seeded_template: Path, tmp_path: Path) -> Database:
    path = tmp_path / "ledger.db"
    shutil.copyfile(sqlite_seeded_template, path)
    return Database("sqlite", str(path))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that any connection of ours runs from now on, with its values."""
    connect = sqlite._connect
    ran: list[str] = []

    def traced(path: str, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.set_trace_callback(ran.append)
        return connection

    monkeypatch.setattr(sqlite, "_connect", traced)
    return ran


@pytest.fixture
async def ledger(sqlite_seeded: Database, statements: list[str]) -> AsyncIterator[Ledger]:
    async with sqlite_seeded.open() as opened:
        yield opened


async def ran_by(work: Work, ledger: Ledger, statements: list[str]) -> list[str]:
    """The statements of a call that is not the first of its kind, without those that begin and end."""
    await work(ledger)
    statements.clear()
    await work(ledger)
    return [one for one in statements if one.split()[0] not in ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "PRAGMA")]


def plan(path: str, statement: str) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()]
    finally:
        connection.close()


def unwanted(steps: list[str]) -> list[str]:
    """All but a search by an index, the one row of the version, and what puts such searches together or takes a list of
    values apart.
    """
    fine = (
        *("SEARCH", "SCAN CONSTANT ROW", "SCAN json_each", "SCAN chatledger_version"),
        *("COMPOUND", "LEFT-MOST", "UNION ALL", "LIST SUBQUERY", "SCALAR SUBQUERY"),
    )
    return [step for step in steps if not step.startswith(fine) or (step.startswith("SEARCH") and "INDEX" not in step)]


@named(APPENDS | HISTORIES)
@pytest.mark.plain
async def test_every_step_is_a_search_by_an_index(
    ledger: Ledger, sqlite_seeded: Database, statements: list[str], work: Work
) -> None:
    ran = await ran_by(work, ledger, statements)
    assert ran
    assert {one: steps for one in ran if (steps := unwanted(plan(sqlite_seeded.url, one)))} == {}


@named(LISTS)
async def test_a_list_of_threads_searches_and_sorts_no_threads(
    ledger: Ledger, sqlite_seeded: Database, statements: list[str], work: Work
) -> None:
    (ran,) = await ran_by(work, ledger, statements)
    steps = plan(sqlite_seeded.url, ran)
    nested = ("CORRELATED SCALAR", "SCALAR SUBQUERY", "REUSE SUBQUERY", "CO-ROUTINE", "SCAN (subquery")
    of_segments = [step for step in unwanted(steps) if not step.startswith((*nested, "SEARCH m", "SEARCH p"))]
    assert of_segments == ["USE TEMP B-TREE FOR ORDER BY"]  # those of one lineage, last first
    assert steps[0].startswith("SEARCH t USING INDEX threads_tenant_id_")


@pytest.mark.plain
async def test_a_message_id_is_searched_by_its_own_index(
    ledger: Ledger, sqlite_seeded: Database, statements: list[str]
) -> None:
    work: dict[str, Work] = {
        "(tenant_id=? AND message_id=?)": FIND,
        "(tenant_id=? AND message_id=? AND thread_id=?)": lambda ledger: ledger.messages.get(LONG, "m9000"),
    }
    for columns, call in work.items():
        ran = await ran_by(call, ledger, statements)
        (steps,) = [plan(sqlite_seeded.url, one) for one in ran if "message_id = " in one]
        assert steps == [f"SEARCH messages USING INDEX messages_message_id_key {columns}"]


async def test_a_page_of_fresh_forks_is_one_statement(ledger: Ledger, statements: list[str]) -> None:
    await fork_threads(ledger)
    assert len(await ran_by(FORKS, ledger, statements)) == 1


async def test_partial_messages_are_searched_by_their_own_index(
    ledger: Ledger, sqlite_seeded: Database, statements: list[str]
) -> None:
    (ran,) = await ran_by(LEFT["partials"], ledger, statements)
    first, second = plan(sqlite_seeded.url, ran)[:2]
    assert first.endswith("branches USING INDEX branches_partial_idx (tenant_id=?)")
    assert unwanted([first, second]) == []


@named(SUMMARIES)
async def test_a_summary_searches_and_groups(
    ledger: Ledger, sqlite_seeded: Database, statements: list[str], work: Work
) -> None:
    """Two searches find the stored scores and the kept ones; the statement ranks and groups them. Each further step
    reads the rows that another step made, or sorts them.
    """
    (ran,) = await ran_by(work, ledger, statements)
    steps = unwanted(plan(sqlite_seeded.url, ran))
    made = {step.removeprefix("CO-ROUTINE ") for step in steps if step.startswith("CO-ROUTINE ")}
    rest = [step for step in steps if step.removeprefix("CO-ROUTINE ").removeprefix("SCAN ") not in made]
    assert len(rest) == 2
    assert all(step.startswith("USE TEMP B-TREE FOR ") for step in rest)


def test_the_search_for_unwanted_steps_finds_a_scan(sqlite_seeded: Database) -> None:
    """That the tests above can fail."""
    assert unwanted(plan(sqlite_seeded.url, "SELECT * FROM messages WHERE text = 'a'"))
    assert unwanted(plan(sqlite_seeded.url, "SELECT * FROM messages ORDER BY created_at"))


async def test_an_append_runs_as_many_statements_however_long_the_thread_is(
    ledger: Ledger, statements: list[str]
) -> None:
    long, short = [len(await ran_by(work, ledger, statements)) for work in APPENDS.values()]
    assert long == short <= 2 + 1 + 1 + 5 + 2 + 2  # the run asked for and made, the thread, the tip, and a row each


@pytest.mark.parametrize(
    ("work", "most"),
    [
        *((HISTORIES[name], 4) for name in ("a page", "a page of many")),
        (HISTORIES["last turns"], 5),
        *((work, 1) for work in LISTS.values()),
    ],
)
@pytest.mark.plain
async def test_a_read_runs_no_more_statements(ledger: Ledger, statements: list[str], work: Work, most: int) -> None:
    assert len(await ran_by(work, ledger, statements)) <= most


@named(APPENDS | HISTORIES | LISTS | SUMMARIES)
@pytest.mark.plain
async def test_a_call_visits_a_drivers_thread_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    """However a thread is asked, it answers through the loop's one door for other threads."""
    await work(ledger)
    loop, answers = asyncio.get_running_loop(), Counter[str]()
    answer = loop.call_soon_threadsafe

    def counted(*arguments: Any, **options: Any) -> asyncio.Handle:
        answers["seen"] += 1
        return answer(*arguments, **options)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    await work(ledger)
    assert answers["seen"] == 1
