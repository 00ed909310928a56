"""An import again, without an id field: the file's name and the place in it identify a record, and no word of it."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, VersionConflict
from chatledger.errors import IdConflict
from chatledger.ids import derived_id
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.lists.thread_ids import iterate_ids
from chatledger.transfer.plan import Planner, _digest
from tests.transfer.files import array, bring, lines, talk, texts
from tests.transfer.test_import_file import outcome

RECORDS = [{"messages": talk(f"question {number}", "answer")} for number in range(4)]


async def ids(ledger: Ledger) -> set[str]:
    return {thread_id async for thread_id in iterate_ids(scope_of(ledger))}


@pytest.mark.parametrize("options", [{}, {"stop_on_error": True}], ids=["in batches", "one by one"])
async def test_an_id_says_nothing_of_the_record(ledger: Ledger, options: dict[str, Any]) -> None:
    other = ledger.tenant("other")
    await bring(ledger, lines(*RECORDS), **options)
    await bring(other, lines(*({"messages": talk("else"), "n": number} for number in range(4))), **options)
    assert await ids(ledger) == await ids(other)
    assert outcome(await bring(ledger, lines(*RECORDS), **options)) == (0, 0, 4, 0, 0)


async def test_equal_records_are_as_many_threads(ledger: Ledger) -> None:
    content = array(*[{"messages": talk("the same")}] * 3)
    assert outcome(await bring(ledger, content)) == (3, 0, 0, 0, 3)
    assert outcome(await bring(ledger, content)) == (0, 0, 3, 0, 0)


async def test_a_record_may_grow_at_its_place(ledger: Ledger) -> None:
    await bring(ledger, lines(*RECORDS))
    grown = [{"messages": [*RECORDS[0]["messages"], *talk("more")]}, *RECORDS[1:]]
    assert outcome(await bring(ledger, lines(*grown))) == (0, 1, 3, 0, 1)


async def test_another_file_of_the_same_name_is_refused_as_a_whole(ledger: Ledger) -> None:
    await bring(ledger, lines(*RECORDS))
    others = [{"messages": talk(f"another {number}")} for number in range(9)]
    report = await bring(ledger, lines(*others))
    [failure] = report.failures
    assert isinstance(failure.error, IdConflict)
    assert "--source" in failure.problem
    assert "'in.json'" in failure.problem
    assert await ledger.threads.count() == 4
    for _ in range(2):
        report = await bring(ledger, lines(*others), source="the other one")
        assert report.failures == []
    assert (report.unchanged, await ledger.threads.count()) == (9, 13)


async def redact(ledger: Ledger, thread_id: str) -> None:
    await erase_at(scope_of(ledger), thread_id, 1)


async def revise(ledger: Ledger, thread_id: str) -> None:
    [first, *_] = (await ledger.messages.history(thread_id)).messages
    await ledger.messages.revise(thread_id, first.message_id or "", ChatMessage(role="user", content="revised"))


async def retract(ledger: Ledger, thread_id: str) -> None:
    [first, *_] = (await ledger.messages.history(thread_id)).messages
    await ledger.messages.remove(thread_id, first.message_id or "")


@pytest.mark.parametrize("change", [redact, revise, retract])
async def test_a_first_record_that_was_changed_in_the_ledger_stops_no_import(ledger: Ledger, change: Any) -> None:
    await bring(ledger, lines(RECORDS[0]))
    [thread_id] = await ids(ledger)
    await change(ledger, thread_id)
    before = (await ledger.messages.history(thread_id)).messages
    report = await bring(ledger, lines(*RECORDS))
    assert [type(failure.error) for failure in report.failures] == [VersionConflict]
    assert (report.created, (await ledger.messages.history(thread_id)).messages) == (3, before)


# --- Threads that an earlier release imported, under ids of their words -----------------------------------------------


@pytest.fixture
async def earlier(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger into which an earlier release imported the first two records."""

    def of_words(self: Planner, record: Any, shape: Any, parcel: Any) -> tuple[str, None]:
        digest = _digest(shape.identify(record.value, parcel.payload))
        self._equal[digest] += 1
        return derived_id("record", digest, str(self._equal[digest])), None

    with monkeypatch.context() as patched:
        patched.setattr(Planner, "_ids", of_words)
        await bring(ledger, lines(*RECORDS[:2]))
    return ledger


@pytest.mark.parametrize("options", [{}, {"stop_on_error": True}], ids=["in batches", "one by one"])
@pytest.mark.parametrize("turned", [False, True])
async def test_stored_ids_stay(earlier: Ledger, options: dict[str, Any], turned: bool) -> None:
    stored = await ids(earlier)
    content = lines(*(RECORDS[::-1] if turned else RECORDS))
    assert outcome(await bring(earlier, content, **options, dry_run=True)) == (2, 0, 2, 0, 4)
    assert outcome(await bring(earlier, content, **options)) == (2, 0, 2, 0, 4)
    assert outcome(await bring(earlier, content, **options)) == (0, 0, 4, 0, 0)
    assert stored < await ids(earlier)
    assert sorted(await texts(earlier)) == [[f"question {number}", "answer"] for number in range(4)]


@pytest.mark.parametrize("options", [{}, {"stop_on_error": True}], ids=["in batches", "one by one"])
async def test_what_was_erased_under_an_earlier_id_does_not_come_back(earlier: Ledger, options: dict[str, Any]) -> None:
    erased = sorted(await ids(earlier))[0]
    await earlier.erasures.erase(("thread", erased))
    for _ in range(2):
        report = await bring(earlier, lines(*RECORDS), **options)
        assert [one.error.thread_id for one in report.erased] == [erased]  # type: ignore[attr-defined]
    assert (await earlier.threads.count(), report.unchanged) == (3, 3)


async def test_a_thread_that_was_deleted_comes_back_once(earlier: Ledger) -> None:
    await earlier.threads.delete(sorted(await ids(earlier))[0])
    report = await bring(earlier, lines(*RECORDS[:2]))
    assert outcome(report) == (1, 0, 1, 0, 2)
    assert await earlier.threads.count() == 2
