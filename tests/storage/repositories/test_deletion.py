"""Retention: what nobody wrote to for long enough goes, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatledger import InvalidArgument, Ledger, ThreadNotFound
from chatledger.storage.changes import deletion
from chatledger.types import Deleted
from tests.conversations import turn

NOW = datetime.now(UTC)


async def ids(ledger: Ledger) -> set[str]:
    return {thread.thread_id for thread in await ledger.threads.list()}


@pytest.fixture
async def filled(ledger: Ledger) -> Ledger:
    """Threads of one, two, … five days ago, two messages in each of them written then."""
    for days in range(1, 6):
        await ledger.threads.create(f"{days} days", created_at=NOW - timedelta(days=days))
    return ledger


async def test_older_threads_are_deleted(filled: Ledger) -> None:
    deleted = await filled.threads.delete_inactive(older_than=timedelta(days=2, hours=1))
    assert deleted.rows["threads"] == 3
    assert await ids(filled) == {"1 days", "2 days"}
    assert (await filled.threads.delete_inactive(older_than=timedelta(days=2, hours=1))).total == 0


async def test_a_dry_run_counts_what_goes_and_deletes_nothing(filled: Ledger) -> None:
    await filled.messages.append("5 days", turn(), run_id="r")
    before = await ids(filled)
    heard: list[Deleted] = []
    age = timedelta(days=1, hours=1)
    foreseen = await filled.threads.delete_inactive(older_than=age, dry_run=True, on_batch=heard.append)
    assert (await ids(filled), heard) == (before, [])
    assert foreseen == await filled.threads.delete_inactive(older_than=age)
    assert foreseen.rows["threads"] == 3


async def test_a_datetime_may_give_the_age(filled: Ledger) -> None:
    await filled.threads.delete_inactive(older_than=NOW - timedelta(days=4, hours=1))
    assert await ids(filled) == {f"{days} days" for days in range(1, 5)}
    with pytest.raises(InvalidArgument, match="zone"):
        await filled.threads.delete_inactive(older_than=datetime(2024, 1, 1))  # noqa: DTZ001 - that is what is refused
    with pytest.raises(InvalidArgument, match="older_than must be a timedelta or a datetime, not int"):
        await filled.threads.delete_inactive(older_than=5)  # type: ignore[arg-type]


async def test_a_thread_that_is_written_to_stays(filled: Ledger) -> None:
    await filled.messages.append("5 days", turn())
    await filled.threads.delete_inactive(older_than=timedelta(hours=1))
    assert await ids(filled) == {"5 days"}
    assert (await filled.messages.history("5 days")).last_seq == 5


async def test_a_thread_that_is_written_to_meanwhile_stays(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found idle, and written to before it is held."""
    found = iter([["5 days", "4 days"], []])
    monkeypatch.setattr(deletion, "idle_threads", lambda *_: next(found))
    await filled.messages.append("5 days", turn())
    deleted = await filled.threads.delete_inactive(older_than=timedelta(hours=1))
    assert deleted.rows["threads"] == 1
    assert await ids(filled) == {f"{days} days" for days in (1, 2, 3, 5)}


async def test_each_transaction_deletes_a_small_batch(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "IDLE_BATCH", 2)
    batches: list[Deleted] = []
    deleted = await filled.threads.delete_inactive(older_than=timedelta(hours=1), on_batch=batches.append)
    assert [batch.rows["threads"] for batch in batches] == [2, 2, 1]
    assert deleted.rows["threads"] == 5


async def test_other_tenants_keep_their_threads(filled: Ledger) -> None:
    other = filled.tenant("other")
    await other.threads.create("old", created_at=NOW - timedelta(days=9))
    await filled.threads.delete_inactive(older_than=timedelta(0))
    assert (await ids(filled), await ids(other)) == (set(), {"old"})


async def test_a_dry_run_counts_the_rows_of_one_thread(filled: Ledger) -> None:
    await filled.messages.append("5 days", turn(), run_id="r")
    foreseen = await filled.threads.delete("5 days", dry_run=True)
    assert "5 days" in await ids(filled)
    assert await filled.threads.delete("5 days") == foreseen
    for hidden in (filled, filled.tenant("other"), filled.user("ada")):
        with pytest.raises(ThreadNotFound):
            await hidden.threads.delete("5 days" if hidden is filled else "4 days", dry_run=True)
