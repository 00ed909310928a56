"""What another user has costs a caller no more work than what nobody has, however much it is: else the time of an
answer would tell that it exists. SQLite counts the steps of its statements, PostgreSQL the rows that it reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.errors import FeedbackNotFound, RunNotFound, ThreadNotFound
from chatledger.storage.databases.sqlite import writer
from chatledger.storage.drivers import sqlite
from tests.conftest import Database
from tests.conversations import assistant, call, user
from tests.postgres import Server
from tests.storage.history.test_query_plans import rows_read
from tests.storage.raw import query

Call = Callable[[Ledger, str], Awaitable[Any]]
GROUP = 5
NOBODYS, SMALL, LARGE = "nobody's", "bob's small", "bob's large"

CALLS: dict[str, Call] = {
    "list the scores of a thread": lambda eve, t: eve.feedback.list(thread_id=t),
    "list all scores of a thread": lambda eve, t: eve.feedback.list(thread_id=t, events=True),
    "sum the scores of a thread": lambda eve, t: eve.feedback.summary(thread_id=t),
    "sum all scores of a thread": lambda eve, t: eve.feedback.summary(thread_id=t, events=True),
    "sum the scores of an agent in a thread": lambda eve, t: eve.feedback.summary(thread_id=t, agent="a"),
    "list the scores of a run": lambda eve, t: eve.feedback.list(run_id=run_of(t)),
    "sum the runs of a thread": lambda eve, t: eve.runs.usage("model", thread_id=t),
    "sum the scores of a run": lambda eve, t: eve.feedback.summary(run_id=run_of(t)),
    "remove a score": lambda eve, t: eve.feedback.remove(f"score 0 of {t}"),
    "record a score": lambda eve, t: eve.feedback.record(Feedback(run_id=run_of(t), key="k", score=1)),
    "delete a thread": lambda eve, t: eve.threads.delete(t),
    "count the rows of a thread": lambda eve, t: eve.threads.delete(t, dry_run=True),
    "change the rules": lambda eve, t: eve.threads.update(t, rules="strict"),
    "change the title": lambda eve, t: eve.threads.update(t, title="hers"),
    "list the branches": lambda eve, t: eve.branches.list(t),
    "list the runs": lambda eve, t: eve.runs.list(thread_id=t),
    "list the runs that wait": lambda eve, t: eve.runs.list(thread_id=t, status="running"),
    "find a run": lambda eve, t: eve.runs.find(run_of(t)),
    "end a run": lambda eve, t: eve.runs.finish(run_of(t), status="completed"),
    "find a thread": lambda eve, t: eve.threads.find(t),
    "read the messages": lambda eve, t: eve.messages.history(t),
    "append": lambda eve, t: eve.messages.append(t, [user("?")]),
    "append what is stored": lambda eve, t: eve.messages.append(t, messages_of(t)),
    "append much that is stored, in one group": lambda eve, t: appends(eve, t),
    "append to a run": lambda eve, t: eve.messages.append(t, [user("?")], run_id="hers"),
    "close the open calls": lambda eve, t: eve.messages.close_open_calls(t),
    "list the values": lambda eve, t: eve.kv.list(("thread", t)),
}


def run_of(thread_id: str) -> str:
    return f"run 0 of {thread_id}"


def messages_of(thread_id: str) -> list[ChatMessage]:
    """Those of a large thread, the last of which leaves many calls open."""
    calls = [call(f"call {number}") for number in range(60)]
    messages = [user("?", message_id=f"message {number} of {thread_id}") for number in range(60)]
    return [*messages, assistant(calls=calls, message_id=f"calls of {thread_id}")]


async def appends(ledger: Ledger, thread_id: str) -> None:
    """Appends that share a look: all but the first come while a statement runs."""
    batches = [ledger.messages.append(thread_id, messages_of(thread_id)[number:]) for number in range(GROUP)]
    with pytest.raises(ThreadNotFound):
        raise next(
            one for one in await asyncio.gather(*batches, return_exceptions=True) if isinstance(one, BaseException)
        )


@pytest.fixture(scope="session")
def stored_on_postgresql(pg_server: Server, pg_template: str) -> Iterator[str]:
    with pg_server.database(template=pg_template) as url:
        asyncio.run(fill(Database("postgresql", url)))
        yield url


@pytest.fixture(scope="session")
def stored_on_sqlite(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "ledger.db"
    shutil.copyfile(sqlite_template, path)
    asyncio.run(fill(Database("sqlite", str(path))))
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A copy for each test: it takes longer to write the rows than to copy them."""
    if request.param == "sqlite":
        path = tmp_path / "ledger.db"
        shutil.copyfile(request.getfixturevalue("stored_on_sqlite"), path)
        yield Database("sqlite", str(path))
        return
    server: Server = request.getfixturevalue("pg_server")
    with server.database(template=request.getfixturevalue("stored_on_postgresql")) as url:
        database = Database("postgresql", url)
        name = url.rsplit("/", 1)[1].split("?")[0]
        asyncio.run(query(database, f'ALTER DATABASE "{name}" SET enable_seqscan = off'))  # as if it were large
        yield database


async def fill(database: Database) -> None:
    """Bob has a thread with little in it and one with much, and Eve has many threads."""
    async with database.open() as ledger:
        await store(ledger.user("bob"), SMALL, 1)
        await store(ledger.user("bob"), LARGE, 60)
        for number in range(60):
            await store(ledger.user("eve"), f"eve's {number}", 1)
    if database.kind == "postgresql":
        await query(database, "ANALYZE")


async def store(ledger: Ledger, thread: str, count: int) -> None:
    await ledger.threads.create(thread)
    for number, message in enumerate(messages_of(thread)[:count]):
        run_id = f"run {number} of {thread}"
        await ledger.messages.append(thread, [message], run_id=run_id)
        score = Feedback(run_id=run_id, key="k", score=1, feedback_id=f"score {number} of {thread}")
        await ledger.feedback.record(score)
        more = score.model_copy(update={"run_id": run_of(thread), "feedback_id": f"another {number} of {thread}"})
        await ledger.feedback.record(more)
    if count > 1:
        await ledger.messages.append(thread, messages_of(thread)[-1:])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number, the steps of all connections of ours to SQLite from now on."""
    connect = sqlite._connect
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    def counting(path: str, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # else its first statement reads the schema
        connection.set_progress_handler(count, 1)
        return connection

    monkeypatch.setattr(sqlite, "_connect", counting)
    monkeypatch.setattr(writer, "LONG", 60.0)  # else the groups would follow how slow the machine is
    return counted


async def ask(ledger: Ledger, call: Call, thread: str) -> None:
    with contextlib.suppress(ThreadNotFound, RunNotFound, FeedbackNotFound):
        assert not list(await call(ledger.user("eve"), thread) or ())


@pytest.mark.parametrize("name", CALLS)
async def test_another_users_thread_costs_the_work_of_none(stored: Database, steps: list[int], name: str) -> None:
    work = await (steps_of if stored.kind == "sqlite" else rows_of)(stored, CALLS[name], steps)
    nobodys, small, large = work
    assert abs(large - small) <= 4  # of a key that is found deeper in its index
    rows_and_owners = 100 if stored.kind == "sqlite" else 10
    assert large - nobodys <= rows_and_owners * (GROUP if name.endswith("in one group") else 1), work


async def steps_of(database: Database, call: Call, steps: list[int]) -> list[int]:
    taken = []
    async with database.open() as ledger:
        await ledger.kv.delete(("tenant",), "nothing")  # else the writer's thread may begin beside a call
        for thread in (NOBODYS, SMALL, LARGE):
            for _ in range(2):  # a first call fills caches
                before = steps[0]
                await ask(ledger, call, thread)
            taken.append(steps[0] - before)
    return taken


async def rows_of(database: Database, call: Call, _: list[int]) -> list[int]:
    read = [await rows_read(database, partial(ask, call=call, thread=one)) for one in (NOBODYS, SMALL, LARGE)]
    return [one.total() for one in read]
