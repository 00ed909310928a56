"""The logger `chatledger`: it tells of faults, and never what people said, who they are, or a password."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from chatledger import ChatLedgerError, ChatMessage, Feedback, Ledger, Payload, Thread, Transaction
from chatledger.admin import migrate
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.faults.connections import set_limits
from tests.faults.proxy import proxied

SECRET = "c4n4ry"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
USER = f"{SECRET} ada"


class Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """All records of the library, at its most talkative."""
    caplog.set_level(logging.DEBUG, "chatledger")
    listening = Listening()
    logging.getLogger("chatledger").addHandler(listening)
    yield listening.records
    logging.getLogger("chatledger").removeHandler(listening)


def told(records: list[logging.LogRecord], area: str) -> list[str]:
    return [record.getMessage() for record in records if record.name == f"chatledger.{area}"]


def assert_no_secret(records: list[logging.LogRecord]) -> None:
    """In all that a handler may show of a record, also of the objects that it holds and of an error's causes."""
    ours = [record for record in records if record.name.startswith("chatledger")]
    assert ours
    for record in ours:
        shown = logging.Formatter().format(record) + repr(vars(record)) + "".join(map(str, record.args or ()))
        assert SECRET not in shown
        assert record.exc_info is None


async def abandon(ledger: Ledger, thread_id: str) -> None:
    """A thread whose last message is partial, and whose writer is gone."""
    thread = Thread(thread_id=thread_id, created_at=NOON, active_at=NOON)
    left = [user(SECRET), assistant(SECRET, state="partial", message_id="p", calls=[call("c", SECRET, SECRET)])]
    await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, left)])


async def test_a_takeover_is_told_once(ledger: Ledger, records: list[logging.LogRecord]) -> None:
    await abandon(ledger, "appended")
    await ledger.messages.append("appended", turn())
    interrupted = "interrupted the partial message 2 of branch 0 of thread 'appended', which its writer abandoned"
    assert told(records, "drafts") == [interrupted]
    await abandon(ledger, "anew")
    async with ledger.messages.stream("anew", message=ChatMessage.assistant(message_id="p")) as draft:
        await draft.feed("again")
    assert told(records, "drafts")[1:] == [
        "began anew the partial message 2 of branch 0 of thread 'anew', which its writer abandoned"
    ]
    records.clear()
    with suppress(ZeroDivisionError):
        async with ledger.messages.stream("anew") as draft:  # it ends its own message
            await draft.feed("x")
            raise ZeroDivisionError
    async with ledger.messages.stream("anew") as draft:
        await draft.feed("x")
    assert told(records, "drafts") == []


async def test_a_migration_is_told(tmp_path: Path, pg_url: str, records: list[logging.LogRecord]) -> None:
    for url in (str(tmp_path / "old.db"), pg_url):
        await asyncio.to_thread(migrate, url, to="0003")
        records.clear()
        await asyncio.to_thread(migrate, url)
        first, last = told(records, "migrations")
        assert first == "migrating from revision 0003 to head"
        assert last.startswith("migrated to revision 0")
        records.clear()
        await asyncio.to_thread(migrate, url)
        assert records == []


async def test_slow_calls_are_told_by_name(database: Database, records: list[logging.LogRecord]) -> None:
    async with database.open(slow_call=0) as ledger:
        await ledger.threads.create("t")
        await ledger.tenant("a").user("b").threads.list()
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
        with suppress(ChatLedgerError):
            await ledger.messages.get("t\nu" + "x" * 600, "m")
        assert [message async for message in ledger.messages.iterate("t")]
        async with ledger.messages.stream("t") as draft:
            await draft.feed("x")
    found = [line.rpartition(" after ")[0] for line in told(records, "calls")]
    assert found == [
        "threads.create of thread 't' returned",
        "threads.list of thread - returned",
        "messages.append of thread 't' returned",
        f"messages.get of thread 't\\nu{'x' * 77}' raised LimitExceeded",
        "messages.history of thread 't' returned",  # a page of the iteration
        "close of thread - returned",
    ]


async def test_fast_calls_are_not_told(database: Database, records: list[logging.LogRecord]) -> None:
    for slow_call in (None, 3_600):
        async with database.open(slow_call=slow_call) as ledger:
            await ledger.messages.append("t", turn(), create=True)
    assert [record for record in records if record.name != "chatledger.encryption"] == []  # which each opening says


@pytest.mark.parametrize("slow_call", [-1, float("nan"), 10**9, "1", True])
def test_another_threshold_is_refused(slow_call: Any) -> None:
    with pytest.raises(ChatLedgerError, match=r"^slow_call"):
        Ledger.open("t.db", slow_call=slow_call)


async def everything(ledger: Ledger) -> None:
    """Calls with secrets in every text, many of which are refused."""
    await ledger.user(USER).threads.create("t", title=SECRET, metadata={SECRET: SECRET}, exist_ok=True)
    said: list[ChatMessage] = [user(SECRET), assistant(SECRET, calls=[call("c", SECRET, SECRET)]), result("c", SECRET)]
    await ledger.messages.append("t", said, run_id="r", kv={SECRET: SECRET})
    await ledger.messages.append("left", [user(SECRET)])
    await ledger.feedback.record(Feedback(run_id="r", key=SECRET, score=1, user_id=USER))
    refused: list[Any] = [
        ledger.messages.append("t", [result("nobody", SECRET)]),
        ledger.messages.append("t", [user(SECRET)], expected=0),
        ledger.messages.append("t", [user(SECRET, message_id="m" * 600)]),
        ledger.user(f"{USER} not").messages.append("t", [user(SECRET)]),
        ledger.kv.put(("user", USER), SECRET, SECRET, expected=9),
        ledger.user(f"{USER} not").threads.get("t"),
        ledger.messages.append("t", Payload([{"role": SECRET}], "openai-chat")),
        ledger.runs.start("left", run_id="r"),
    ]
    for one in refused:
        with pytest.raises(ChatLedgerError):
            await one
    async with ledger.begin() as tx:
        assert isinstance(tx, Transaction)
        await tx.messages.append("t", [user(SECRET)])
    async with ledger.user(USER).messages.stream("t") as draft:
        await draft.feed(SECRET)


async def test_no_record_holds_a_secret(database: Database, records: list[logging.LogRecord]) -> None:
    async with database.open(slow_call=0) as ledger:
        await abandon(ledger, "left")
        await everything(ledger)
    assert {record.name for record in records} >= {"chatledger.calls", "chatledger.drafts"}
    assert_no_secret(records)


async def test_no_record_of_a_fault_holds_a_secret(pg_database: Database, records: list[logging.LogRecord]) -> None:
    async with pg_database.open() as ledger:
        await abandon(ledger, "left")  # by COPY, which the proxy does not know
    async with proxied(pg_database.url) as proxy:
        url = make_url(proxy.url).set(password=SECRET).render_as_string(hide_password=False)
        async with Ledger.open(url, slow_call=0) as ledger:
            await everything(ledger)
            for where in ("before", "after") * 2:
                proxy.cut(where, 1)
                await ledger.messages.append("t", [user(SECRET)])
                proxy.cut(where, 1)
                await ledger.user(USER).threads.get("t")
            set_limits(ledger, timeout=0.2)
            proxy.cut("after", 1)
            proxy.down = True
            for one in (ledger.messages.append("t", [user(SECRET)]), ledger.threads.update("t", title=SECRET)):
                with pytest.raises(ChatLedgerError):
                    await one
            proxy.down = False
    found = told(records, "connections")
    assert any("trying again: the connection failed (" in line for line in found)
    assert "the outcome of an append to thread 't' is unknown" in found
    assert_no_secret(records)


QUIET = """
import asyncio, logging
from chatledger import Ledger, Thread
from tests.telemetry.test_log import abandon

async def main():
    async with Ledger.open("quiet.db", slow_call=0) as ledger:
        await abandon(ledger, "t")
        await ledger.threads.get("t")

asyncio.run(main())
"""


def test_an_application_that_asks_for_no_log_gets_none(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{QUIET}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
