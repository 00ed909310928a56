"""A pass brings what changed and nothing else, refuses what would lose something, and never writes to the source."""

from __future__ import annotations

import hashlib
import shutil
import stat
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, InvalidArgument, Ledger, Pace, StorageError, Usage
from chatledger.admin import copy, migrate
from chatledger.errors import SchemaMismatch
from chatledger.storage.drivers.urls import read_url
from chatledger.storage.schema.tables import SCHEMA
from chatledger.transfer.copy.database_copy import DatabaseCopy
from chatledger.transfer.copy.ends import open_source, open_target
from chatledger.transfer.copy.marker import ALL, put, read
from tests.conversations import texts, turn, user

SLOW = Pace(interval=3_600, lease=7_200)
ENDS = "end it with: chatledger copy --from URL --to URL --done"
ENDS_ONE = "end it with: chatledger copy --from URL --to URL --tenant T --done"


async def fill(url: str, *, threads: int = 3, tenant: str = "default") -> None:
    async with Ledger.open(url, tenant=tenant) as ledger:
        for number in range(threads):
            await ledger.threads.create(f"t{number}")
            await ledger.messages.append(f"t{number}", turn(f"m{number}-"), run_id=f"r{number}")
            await ledger.feedback.record(Feedback(run_id=f"r{number}", key="stars", score=4, user_id="ada"))
        await ledger.kv.put(("tenant",), "a", 1)
        await ledger.kv.put(("user", "ada"), "a", 1)
        await ledger.user("ada").threads.create("ada's")


@pytest.fixture
async def source(tmp_path: Path) -> str:
    url = str(tmp_path / "source.db")
    await fill(url)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place without tables."""
    if request.param == "sqlite":
        return str(tmp_path / "target.db")
    url: str = request.getfixturevalue("pg_url")
    return url


def bytes_of(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


async def test_only_what_changed_is_written_and_the_source_is_not(source: str, target: str) -> None:
    before = bytes_of(source)
    first = await copy(source, target)
    assert (first.threads, first.copied, first.removed) == (4, 4, 0)
    assert first.rows["messages"] == 15
    again = await copy(source, target)
    assert (again.threads, again.copied, again.rows) == (4, 0, {})
    assert bytes_of(source) == before
    async with Ledger.open(source) as ledger:
        await ledger.messages.append("t0", [user("More")])
        await ledger.threads.delete("t1")
        await ledger.erasures.erase(("thread", "t2"))
        await ledger.kv.put(("user", "ada"), "a", 2)
    compared = await copy(source, target, verify=True)
    assert any("t0" in difference for difference in compared.differences)
    assert any("threads: 2 rows in the source, 4 in the target" in difference for difference in compared.differences)
    later = await copy(source, target)
    assert (later.threads, later.copied, later.removed) == (2, 1, 2)
    assert {table for table, count in later.rows.items() if count} >= {"erasures", "kv", "messages"}
    ended = await copy(source, target, verify=True, done=True)
    assert (ended.differences, ended.ended) == ([], True)
    async with Ledger.open(target) as ledger:
        assert texts(await ledger.messages.history("t0"))[-1] == "More"
        assert await ledger.erasures.find(("thread", "t2")) is not None
        await ledger.messages.append("t0", [user("Here")])


Write = Callable[[Ledger], Awaitable[Any]]
WRITES: dict[str, Write] = {
    "append": lambda ledger: ledger.messages.append("t0", [user("No")]),
    "create": lambda ledger: ledger.threads.create("new"),
    "append and create": lambda ledger: ledger.messages.append("new", [user("No")], create=True),
    "update": lambda ledger: ledger.threads.update("t0", title="No"),
    "delete": lambda ledger: ledger.threads.delete("t0"),
    "erase": lambda ledger: ledger.erasures.erase(("thread", "t0")),
    "revise": lambda ledger: ledger.messages.revise("t0", "m0-0", user("No")),
    "pop": lambda ledger: ledger.messages.pop("t0"),
    "fork": lambda ledger: ledger.branches.fork("t0", "m0-0"),
    "run": lambda ledger: ledger.runs.start("t0", run_id="new"),
    "score": lambda ledger: ledger.feedback.record(Feedback(run_id="r0", key="stars", score=1)),
    "put": lambda ledger: ledger.kv.put(("tenant",), "a", 2),
    "delete a value": lambda ledger: ledger.kv.delete(("tenant",), "a"),
    "stream": lambda ledger: ledger.messages.stream("t0").__aenter__(),
}


async def test_nobody_else_writes_while_the_marker_stands(source: str, target: str) -> None:
    """Neither a ledger that was opened before it stood nor one that is opened then; both read."""
    migrate_now = Ledger.open(target, migrate=True)
    async with migrate_now as before:
        assert not await before.threads.list()
        await copy(source, target)
        async with Ledger.open(target) as after:
            for ledger in (before, after):
                assert len(texts(await ledger.messages.history("t0"))) == 5
                for name, write in WRITES.items():
                    with pytest.raises(StorageError, match=ENDS) as caught:
                        await write(ledger)
                    assert not caught.value.retryable, name
        assert (await copy(source, target, verify=True)).differences == []
        await copy(source, target, done=True)
        await before.messages.append("t0", [user("Yes")])


async def test_a_target_with_rows_of_its_own_is_refused(source: str, target: str) -> None:
    async with Ledger.open(target, migrate=True) as ledger:
        await ledger.threads.create("mine")
    with pytest.raises(StorageError, match="no copy put them there"):
        await copy(source, target)
    async with Ledger.open(target) as ledger:
        assert [thread.thread_id for thread in await ledger.threads.list()] == ["mine"]
        await ledger.threads.update("mine", title="still open")


async def test_another_source_or_scope_is_refused(source: str, target: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    await fill(other, threads=1)
    await copy(source, target)
    asked: list[dict[str, Any]] = [{}, {"done": True}, {"verify": True}]
    for options in asked:
        with pytest.raises(StorageError, match="from another source"):
            await copy(other, target, **options)
        with pytest.raises(StorageError, match="is of tenant 'default'"):
            await copy(source, target, tenant="default", **options)
    assert (await copy(source, target, verify=True)).differences == []
    with pytest.raises(StorageError, match="so it is no source yet"):
        await copy(target, str(tmp_path / "third.db"))
    assert not (tmp_path / "third.db").exists()


async def test_a_source_that_lost_its_threads_is_refused(source: str, target: str) -> None:
    await copy(source, target)
    async with Ledger.open(source) as ledger:
        for thread in await ledger.threads.list():
            await ledger.threads.delete(thread.thread_id)
    with pytest.raises(StorageError, match="--allow-empty"):
        await copy(source, target)
    assert (await copy(source, target, verify=True)).differences
    assert (await copy(source, target, allow_empty=True)).removed == 4


async def test_done_needs_agreement_and_a_copy(source: str, target: str) -> None:
    await copy(source, target)
    async with Ledger.open(source) as ledger:
        await ledger.threads.delete("t0")
    report = await copy(source, target, verify=True, done=True)
    assert report.differences
    assert not report.ended
    assert (await copy(source, target, done=True)).ended
    with pytest.raises(StorageError, match="nothing to end"):
        await copy(source, target, done=True)


async def test_a_missing_source_is_never_made(tmp_path: Path, target: str) -> None:
    with pytest.raises(StorageError, match="check --from"):
        await copy(str(tmp_path / "typo.db"), target)
    assert not (tmp_path / "typo.db").exists()
    assert not (tmp_path / "target.db").exists()


async def test_one_database_is_no_copy_of_itself(source: str, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(source)
    for other in (source, str(tmp_path / "link.db"), f"sqlite:///{source}"):
        with pytest.raises(StorageError, match="the same database"):
            await copy(source, other)
    with pytest.raises(InvalidArgument, match="must name a database"):
        await copy(None, source)


async def test_an_older_source_is_refused_with_the_command(source: str, target: str) -> None:
    migrate(source, to="0005", discard=True, discard_tombstones=True)
    before = bytes_of(source)
    with pytest.raises(SchemaMismatch, match="chatledger migrate"):
        await copy(source, target)
    assert bytes_of(source) == before


async def test_a_target_file_is_private(source: str, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    await copy(source, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    (tmp_path / "beside.db-wal").touch()
    with pytest.raises(StorageError, match=r"beside\.db-wal"):
        await copy(source, tmp_path / "beside.db")


async def test_open_runs_end_when_they_began(source: str, target: str) -> None:
    async with Ledger.open(source) as ledger:
        await ledger.runs.start("t0", run_id="open", input={"a": 1})
        draft = ledger.messages.stream("t0", message=ChatMessage.assistant(message_id="d"), pace=SLOW)
        await draft.__aenter__()
        await draft.feed("Hal")
        started = (await ledger.runs.get("open")).started_at
        await copy(source, target)
        assert (await copy(source, target)).copied == 0
        await draft.__aexit__(None, None, None)
    assert (await copy(source, target)).copied == 1
    await copy(source, target, done=True)
    async with Ledger.open(target) as ledger:
        run = await ledger.runs.get("open")
        assert (run.status, run.error, run.ended_at) == ("cancelled", "moved", started)


async def test_an_id_that_moved_to_an_earlier_thread_goes_with_it(source: str, target: str) -> None:
    await copy(source, target)
    async with Ledger.open(source) as ledger:
        await ledger.messages.pop("t2")
        await ledger.messages.append("t0", [user("Moved", message_id="m2-4")])
    assert (await copy(source, target)).copied == 2
    assert (await copy(source, target, verify=True)).differences == []


async def test_a_zero_has_no_sign(source: str, target: str, tmp_path: Path) -> None:
    """SQLite has no score -0.0, and PostgreSQL no cost -0: the digests of both sides never became equal."""
    async with Ledger.open(source) as ledger:
        await ledger.runs.start("t0", run_id="free")
        await ledger.runs.finish("free", status="completed", usage=Usage(cost=Decimal("-0.00")))
    await copy(source, target)
    assert (await copy(source, target, verify=True, done=True)).differences == []
    async with Ledger.open(target) as ledger:
        usage = (await ledger.runs.get("free")).usage
        assert usage is not None
        assert str(usage.cost) == "0.00"
        await ledger.feedback.record(Feedback(run_id="r0", key="stars", score=-0.0, user_id="eve"))
        await ledger.erasures.erase(("thread", "t1"), keep_scores=True)
    for number, back in enumerate((str(tmp_path / "back.db"), str(tmp_path / "again.db"))):
        await copy(target, back)
        assert (await copy(target, back, verify=True, done=True)).differences == [], number


# --- Tombstones -------------------------------------------------------------------------------------------------------


async def test_no_erased_person_comes_back(source: str, target: str, tmp_path: Path) -> None:
    """A copy of an old backup into the database that erased somebody since."""
    backup = str(tmp_path / "backup.db")
    await copy(source, target)
    await copy(source, target, done=True)
    shutil.copyfile(source, backup)
    async with Ledger.open(target) as ledger:
        await ledger.erasures.erase(("thread", "t0"))
        await ledger.erasures.erase(("user", "ada"))
        for thread in await ledger.threads.list():
            await ledger.threads.delete(thread.thread_id)
        await ledger.kv.delete(("tenant",), "a")
        tombstones = list(await ledger.erasures.list())
    report = await copy(backup, target)
    assert report.threads == 2
    assert report.left_out["threads"] == 2
    assert report.left_out["feedback"] == 3
    assert report.left_out["kv"] == 1
    compared = await copy(backup, target, verify=True, done=True)
    assert (compared.differences, compared.left_out) == ([], report.left_out)
    async with Ledger.open(target) as ledger:
        assert list(await ledger.erasures.list()) == tombstones
        assert sorted(thread.thread_id for thread in await ledger.threads.list()) == ["t1", "t2"]
        assert not await ledger.feedback.list()


async def test_what_came_after_an_erasure_is_copied(source: str, target: str) -> None:
    async with Ledger.open(source) as ledger:
        await ledger.erasures.erase(("user", "ada"))
        later = datetime.now(UTC) + timedelta(seconds=1)
        await ledger.user("ada").threads.create("back again", created_at=later)
        await ledger.kv.put(("user", "ada"), "b", 1)
    await copy(source, target)
    assert (await copy(source, target, verify=True, done=True)).differences == []
    async with Ledger.open(target) as ledger:
        assert [thread.thread_id for thread in await ledger.user("ada").threads.list()] == ["back again"]
        assert await ledger.kv.get(("user", "ada"), "b") is not None


async def test_what_an_import_gave_an_erased_person_later_is_copied(source: str, target: str) -> None:
    """With the times that it had elsewhere, before the erasure. The tombstones of the source hid it."""
    async with Ledger.open(source) as ledger:
        await ledger.erasures.erase(("tenant",))
        await ledger.erasures.erase(("user", "ada"))
        earlier = datetime.now(UTC) - timedelta(days=900)
        await ledger.user("ada").threads.create("imported", created_at=earlier)
        await ledger.threads.create("imported too", created_at=earlier)
    for _ in range(2):  # the second pass finds the tombstones in the target as well
        report = await copy(source, target)
        assert (report.threads, report.left_out.get("threads", 0)) == (2, 0)
    async with Ledger.open(source) as ledger:
        await ledger.user("ada").threads.create("imported later", created_at=earlier)
    assert (await copy(source, target)).copied == 1
    assert (await copy(source, target, verify=True, done=True)).differences == []
    async with Ledger.open(target) as ledger:
        assert await ledger.user("ada").threads.count() == 2


# --- One tenant -------------------------------------------------------------------------------------------------------


async def test_one_tenant_goes_beside_others_that_write(source: str, target: str) -> None:
    await fill(source, tenant="acme", threads=2)
    async with Ledger.open(target, migrate=True) as other:
        await other.threads.create("mine")
        await copy(source, target, tenant="acme")
        await other.messages.append("mine", [user("Mine")])
        assert (await copy(source, target, tenant="acme", verify=True)).differences == []
        with pytest.raises(StorageError, match=ENDS_ONE):
            await other.tenant("acme").threads.create("no")
        async with Ledger.open(source, tenant="acme") as ledger:
            await ledger.threads.delete("t0")
        assert (await copy(source, target, tenant="acme")).removed == 1
        assert (await copy(source, target, tenant="acme", verify=True, done=True)).ended
        await other.tenant("acme").messages.append("t1", [user("Yes")])
        assert texts(await other.messages.history("mine")) == ["Mine"]
        assert [thread.thread_id for thread in await other.threads.list()] == ["mine"]


async def test_an_erased_tenant_is_refused(source: str, target: str) -> None:
    await fill(source, tenant="acme", threads=1)
    async with Ledger.open(source, tenant="acme") as ledger:
        await ledger.erasures.erase(("tenant",))
    with pytest.raises(StorageError, match="tenant 'acme' was erased"):
        await copy(source, target, tenant="acme")


async def test_a_pass_that_outlives_the_end_writes_nothing(source: str, target: str) -> None:
    """It removed what the new owner of the target had written."""
    await copy(source, target)
    reads = await open_source(read_url(source), SCHEMA)
    side = await open_target(read_url(target), SCHEMA, create=False, read_only=False)
    try:
        assert (await copy(source, target, done=True)).ended
        async with Ledger.open(target) as ledger:
            await ledger.threads.create("new")
        with pytest.raises(StorageError, match="was ended meanwhile"):
            await DatabaseCopy(reads, side, ALL, True, False, None).run()
        async with Ledger.open(target) as ledger:
            assert (await ledger.threads.get("new")).thread_id == "new"
    finally:
        await side.close()
        await reads.side.close()


async def test_of_two_copies_that_begin_together_one_is_refused(source: str, target: str) -> None:
    """Both had found no marker. With both, no later copy of either could go on or end."""
    await copy(source, target)
    side = await open_target(read_url(target), SCHEMA, create=False, read_only=False)
    try:
        with pytest.raises(StorageError, match=r"a copy of all tenants into .* is under way"):
            await put(side, SCHEMA, "acme", "other")
        assert list(await read(side, SCHEMA)) == [ALL]
    finally:
        await side.close()
    assert (await copy(source, target, done=True)).ended
