from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Limits, RuleViolation, StorageError, Thread, VersionConflict
from chatledger.errors import DecodeError, IdConflict, LimitExceeded, UnknownFormat
from chatledger.repositories import scope_of
from chatledger.repositories.threads import ThreadRepository
from chatledger.storage.databases.scope import Scope
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import PreparedThread, load_threads, prepare_thread
from chatledger.transfer import detect, import_file, new_threads, shapes
from chatledger.transfer.plan import ImportOptions
from chatledger.transfer.store_record import batches
from tests.transfer.files import array, bring, exported, lines, talk, texts

ORPHAN = {"role": "tool", "tool_call_id": "nobody", "content": "?"}


def outcome(report: Any) -> tuple[int, int, int, int, int]:
    return report.created, report.grown, report.unchanged, report.failed, report.messages


async def test_one_thread_for_each_record(ledger: Ledger) -> None:
    report = await bring(ledger, array({"messages": talk("a", "b")}, talk("c"), {"messages": []}))
    assert outcome(report) == (3, 0, 0, 0, 3)
    assert await texts(ledger) == [["a", "b"], ["c"], []]


async def test_importing_again_stores_nothing(ledger: Ledger) -> None:
    content = lines({"messages": talk("a", "b"), "n": 1}, {"messages": talk("a", "b"), "n": 2}, talk("c"))
    await bring(ledger, content)
    assert outcome(await bring(ledger, content)) == (0, 0, 3, 0, 0)
    assert await texts(ledger) == [["a", "b"], ["a", "b"], ["c"]]


async def test_a_file_of_another_form_has_the_same_threads(ledger: Ledger) -> None:
    await bring(ledger, array({"messages": talk("a")}))
    assert outcome(await bring(ledger, lines({"messages": talk("a")}))) == (0, 0, 1, 0, 0)


async def test_file_that_grew_brings_only_what_is_new(ledger: Ledger) -> None:
    old, new = {"messages": talk("a")}, {"messages": talk("b")}
    await bring(ledger, lines(old))
    assert outcome(await bring(ledger, lines(old, new))) == (1, 0, 1, 0, 1)
    assert await texts(ledger) == [["a"], ["b"]]


async def test_record_with_an_id_grows(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": 7, "messages": talk("a", "b")}), id_field="id")
    report = await bring(ledger, lines({"id": 7, "messages": talk("a", "b", "c"), "score": 1.0}), id_field="id")
    assert outcome(report) == (0, 1, 0, 0, 1)
    assert await exported(ledger) == [{"id": 7, "messages": talk("a", "b", "c"), "score": 1.0}]


async def test_record_with_other_keys_changes_them(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": 7, "messages": talk("a"), "score": 1}), id_field="id")
    report = await bring(ledger, lines({"id": 7, "score": 2, "messages": talk("a")}), id_field="id")
    assert outcome(report) == (0, 1, 0, 0, 0)
    assert [list(record.items()) for record in await exported(ledger)] == [
        [("id", 7), ("score", 2), ("messages", talk("a"))]
    ]


async def test_a_record_does_not_grow_past_an_answer_that_is_being_written(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": 7, "messages": talk("a")}), id_field="id")
    [thread] = await ledger.threads.list()
    draft = ChatMessage(role="assistant", content="b", state="partial")
    await ledger.messages.append(thread.thread_id, draft)
    [left] = await ledger.drafts.list()
    report = await bring(ledger, lines({"id": 7, "messages": talk("a", "other")}), id_field="id")
    [failure] = report.failures
    assert isinstance(failure.error, VersionConflict)
    assert await ledger.drafts.list() == [left]


async def test_record_that_differs_from_what_is_stored_fails(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": 7, "messages": talk("a", "b")}), id_field="id")
    report = await bring(ledger, lines({"id": 7, "messages": talk("a", "other", "c")}), id_field="id")
    [failure] = report.failures
    assert isinstance(failure.error, VersionConflict)
    assert (failure.place, failure.error.expected) == ("line 1", 1)
    assert await texts(ledger) == [["a", "b"]]


async def test_thread_that_went_on_is_left_alone(ledger: Ledger) -> None:
    content = lines({"id": 7, "messages": talk("a", "b")})
    await bring(ledger, content, id_field="id")
    [thread] = await ledger.threads.list()
    await ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="live")])
    assert outcome(await bring(ledger, content, id_field="id")) == (0, 0, 1, 0, 0)
    grown = await bring(ledger, lines({"id": 7, "messages": talk("a", "b", "c")}), id_field="id")
    assert isinstance(grown.failures[0].error, VersionConflict)
    assert await texts(ledger) == [["a", "b", "live"]]


async def test_branch_of_an_imported_thread_is_left_alone(ledger: Ledger) -> None:
    content = lines({"id": 7, "messages": talk("a", "b")})
    await bring(ledger, content, id_field="id")
    [thread] = await ledger.threads.list()
    await fork_at(scope_of(ledger), thread.thread_id, 1)
    await ledger.messages.append(thread.thread_id, [ChatMessage(role="assistant", content="edited")])
    assert outcome(await bring(ledger, content, id_field="id")) == (0, 0, 1, 0, 0)


async def test_thread_of_the_application_is_not_continued(ledger: Ledger) -> None:
    await ledger.threads.create("mine")
    report = await bring(ledger, lines({"id": "mine", "messages": talk("a")}), thread_field="id")
    assert isinstance(report.failures[0].error, IdConflict)
    assert await texts(ledger) == [[]]


async def test_a_file_that_begins_with_many_records_without_a_conversation_is_given_up(ledger: Ledger) -> None:
    conversation = b'{"messages": [{"role": "user", "content": "?"}]}'
    for refused, stored in ((import_file._MOST_REFUSED - 1, 1), (import_file._MOST_REFUSED, 0)):
        read: list[int] = []
        stream = io.BytesIO(b"{}\n" * refused + conversation + b"\n" * 10)
        if stored:
            report = await import_file.import_file(ledger, stream, ImportOptions(), file="f", on_bytes=read.append)
            assert (report.created, len(report.failures)) == (1, refused)
        else:
            with pytest.raises(UnknownFormat, match="and 999 more"):
                await import_file.import_file(ledger, stream, ImportOptions(), file="f", on_bytes=read.append)
            assert max(read) < 3 * import_file._MOST_REFUSED
    assert await ledger.threads.count() == 1


async def test_a_bad_record_is_reported_and_the_others_are_imported(ledger: Ledger) -> None:
    bad = [{"messages": [{"role": "user", "content": 3}]}, {"nothing": []}, 17]
    content = lines({"messages": talk("a")}, *bad, {"messages": talk("z")}) + b'{"torn'
    report = await bring(ledger, content)
    assert [(failure.place, type(failure.error)) for failure in report.failures] == [
        (f"line {number}", DecodeError) for number in (2, 3, 4, 6)
    ]
    assert await texts(ledger) == [["a"], ["z"]]


async def test_records_before_a_torn_one_are_stored(ledger: Ledger) -> None:
    torn = array({"messages": talk("a")}, {"messages": talk("b")})[:-20]
    report = await bring(ledger, torn)
    [failure] = report.failures
    assert isinstance(failure.error, DecodeError)
    assert (failure.error.record, failure.error.byte) == (1, torn.rindex(b'{\n  "messages"'))
    assert await texts(ledger) == [["a"]]


async def test_invalid_utf8_is_reported_with_its_byte(ledger: Ledger) -> None:
    content = lines({"messages": talk("a")}) + b'{"messages": "\xff"}\n' + lines({"messages": talk("c")})
    report = await bring(ledger, content)
    assert [str(failure) for failure in report.failures] == [f"in.json, line 2, byte {content.index(0xFF)}: not UTF-8"]
    assert await texts(ledger) == [["a"], ["c"]]


async def test_json_deeper_than_500_is_reported(ledger: Ledger) -> None:
    def deep(depth: int) -> bytes:
        return b'{"messages": [], "x": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}\n"

    report = await bring(ledger, deep(500) + deep(501))
    assert [failure.place for failure in report.failures] == ["line 2"]
    assert report.created == 1


async def test_stop_on_error_stops(ledger: Ledger) -> None:
    content = lines({"messages": talk("a")}, {}, {"messages": talk("c")})
    report = await bring(ledger, content, stop_on_error=True)
    assert (report.stopped, outcome(report)) == (True, (1, 0, 0, 1, 1))


async def test_two_imports_at_once_store_once(ledger: Ledger) -> None:
    content = lines(*({"messages": talk(str(number))} for number in range(8)))
    reports = await asyncio.gather(bring(ledger, content), bring(ledger, content))
    assert sum(report.messages for report in reports) == 8
    assert [report.failures for report in reports] == [[], []]
    assert len(await texts(ledger)) == 8


async def test_dry_run_reports_and_writes_nothing(ledger: Ledger) -> None:
    await bring(ledger, lines({"id": 1, "messages": talk("a")}), id_field="id")
    content = lines({"id": 1, "messages": talk("a", "b"), "x": 1}, {"id": 2, "messages": [ORPHAN]}, {"id": 3})
    report = await bring(ledger, content, id_field="id", dry_run=True)
    assert (outcome(report), report.violations) == ((1, 1, 0, 1, 2), {"R6": 1})
    assert await exported(ledger) == [{"id": 1, "messages": talk("a")}]


async def test_lenient_keeps_and_strict_refuses(ledger: Ledger) -> None:
    content = lines({"messages": [*talk("a"), ORPHAN, {"role": "alien", "content": "x"}]})
    report = await bring(ledger, content, rules="strict")
    assert isinstance(report.failures[0].error, (DecodeError, RuleViolation))
    assert await texts(ledger) == []
    report = await bring(ledger, content)
    assert report.violations == {"R3": 1, "R6": 1}
    assert await texts(ledger) == [["a", "?", "x"]]


async def test_refused_thread_is_not_left_empty(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"messages": [*talk("a"), ORPHAN]}), rules="strict")
    assert isinstance(report.failures[0].error, RuleViolation)
    assert (await ledger.threads.list()).items == []


async def test_long_record_is_split_into_appends(ledger: Ledger) -> None:
    record = {"messages": talk(*map(str, range(2_500)))}
    assert outcome(await bring(ledger, lines(record))) == (1, 0, 0, 0, 2_500)
    assert outcome(await bring(ledger, lines(record))) == (0, 0, 1, 0, 0)
    assert await exported(ledger) == [record]


async def test_interrupted_import_is_finished_by_the_next(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    content = lines({"messages": talk("a")}, {"messages": talk("b")})

    async def store_then_fail(*given: Any) -> Any:
        monkeypatch.undo()
        raise StorageError("gone")

    monkeypatch.setattr(new_threads, "load_threads", store_then_fail)
    with pytest.raises(StorageError):
        await bring(ledger, content)
    assert outcome(await bring(ledger, content)) == (2, 0, 0, 0, 2)


def test_batches_hold_to_both_limits() -> None:
    messages = [ChatMessage(role="user", content="x" * size) for size in (10, 10, 100, 10, 10, 10)]
    sizes = [[len(message.text) for message in batch] for batch in batches(messages, Limits(messages=2, bytes=60))]
    assert sizes == [[10, 10], [100], [10, 10], [10]]


async def test_message_too_large_for_any_append_fails() -> None:
    async with Ledger.open(":memory:") as ledger:
        report = await bring(ledger, lines({"messages": talk("x" * (Limits().bytes + 1))}, {"messages": talk("y")}))
    assert [type(failure.error) for failure in report.failures] == [LimitExceeded]
    assert report.created == 1


async def test_records_are_stored_together_up_to_a_size(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    async def counted(scope: Scope, new: Any) -> None:
        sizes.append(len(new))
        await load_threads(scope, new)

    monkeypatch.setattr(new_threads, "load_threads", counted)
    monkeypatch.setattr(new_threads, "MAX_BYTES", 250)
    records = [{"messages": talk(f"{number:040}")} for number in range(8)]
    assert outcome(await bring(ledger, lines(*records))) == (8, 0, 0, 0, 8)
    assert sizes == [3, 3, 2]
    assert await exported(ledger) == records


async def test_threads_of_a_batch_are_looked_for_at_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    content = lines(*({"messages": talk(str(number))} for number in range(20)))
    await bring(ledger, content)
    asked: list[int] = []

    async def counted(scope: Scope, thread_ids: Any) -> Any:
        asked.append(len(thread_ids))
        return await find_threads(scope, thread_ids)

    for module in (new_threads, import_file):
        monkeypatch.setattr(module, "find_threads", counted)
    monkeypatch.delattr(ThreadRepository, "find")
    assert outcome(await bring(ledger, content)) == (0, 0, 20, 0, 0)
    assert asked[1:] == [40]  # the first asks whether the file is there under other ids; each has an earlier one


async def test_rows_of_threads_that_are_probably_stored_are_not_made(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a batch with a stored thread, the next batch is looked up first."""
    old, new = [{"id": n, "messages": talk(f"text {n}")} for n in range(100, 120)], talk("new")
    monkeypatch.setattr(new_threads, "MAX_BYTES", 4 * len(lines(old[0])))
    prepared: list[str] = []

    def noted(scope: Scope, thread: Thread, *given: Any, **options: Any) -> PreparedThread:
        prepared.append(thread.thread_id)
        return prepare_thread(scope, thread, *given, **options)

    monkeypatch.setattr(new_threads, "prepare_thread", noted)
    await bring(ledger, lines(*old), id_field="id")
    stored = set(prepared)
    assert len(stored) == len(prepared) == 20
    fresh = [{"id": n, "messages": new} for n in range(200, 220)]
    report = await bring(ledger, lines(*old, *fresh), id_field="id")
    assert outcome(report) == (20, 0, 20, 0, 20)
    again = [one for one in prepared[20:] if one in stored]
    assert len(again) <= 8  # the first batch, and on PostgreSQL the one that was gathered while it was loading
    assert len(prepared) - 20 - len(again) >= 8  # a batch of new threads is followed by batches that are loaded
    assert len(await texts(ledger)) == 40


async def test_second_record_of_a_thread_continues_it(ledger: Ledger) -> None:
    content = lines({"id": "t", "messages": talk("a")}, {"id": "t", "messages": talk("a", "b")})
    assert outcome(await bring(ledger, content, thread_field="id")) == (1, 1, 0, 0, 2)


async def test_key_over_512_bytes_fails(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"id": "k" * 513, "messages": []}), thread_field="id")
    assert [type(failure.error) for failure in report.failures] == [LimitExceeded]


async def test_thread_and_user_fields(ledger: Ledger) -> None:
    record = {"meta": {"thread": "t/1", "user": 42}, "messages": talk("a")}
    await bring(ledger, lines(record), thread_field="meta.thread", user_field="meta.user")
    thread = await ledger.threads.get("t/1")
    assert (thread.user_id, thread.message_count) == ("42", 1)
    assert await exported(ledger) == [record]


@pytest.mark.parametrize("value", [True, 1.5, "", ["x"], None])
async def test_id_must_be_text_or_a_whole_number(value: Any) -> None:
    async with Ledger.open(":memory:") as ledger:
        report = await bring(ledger, lines({"id": value, "messages": []}), id_field="id")
    assert [failure.problem.split(":")[0] for failure in report.failures] == ["id"]


async def test_times_of_the_source_are_kept(ledger: Ledger) -> None:
    messages = [{"role": "user", "content": "a", "at": 1741943532.25}, {"role": "assistant", "content": "b"}]
    await bring(ledger, lines({"id": "t", "at": "2025-03-14T09:12:00+09:00", "messages": messages}), **TIMED)
    thread = await ledger.threads.get("t")
    of_record = datetime(2025, 3, 14, 0, 12, tzinfo=UTC)
    assert thread.created_at == of_record
    assert [message.created_at for message in await ledger.messages.history("t")] == [
        datetime(2025, 3, 14, 9, 12, 12, 250_000, tzinfo=UTC),
        of_record,
    ]
    assert (await exported(ledger))[0]["messages"] == messages


TIMED: dict[str, Any] = {"thread_field": "id", "time_field": "at"}


@pytest.mark.parametrize("value", ["2025-03-14T09:12:00", "2025-03-14", "soon", True, [], float("nan"), 1e300])
async def test_time_that_is_none_or_has_no_zone_is_refused_with_its_place(value: Any) -> None:
    async with Ledger.open(":memory:") as ledger:
        late = {"id": "u", "messages": [*talk("a"), {"role": "user", "content": "b", "at": value}]}
        report = await bring(ledger, lines({"id": "t", "at": value, "messages": []}, late), **TIMED)
    assert [(failure.place, failure.problem.partition(":")[0]) for failure in report.failures] == [
        ("line 1", "at"),
        ("line 2", "messages[1].at"),
    ]


async def test_records_without_the_time_asked_for_are_counted(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"id": "t", "messages": talk("a")}), **TIMED)
    assert (report.created, report.without_time) == (1, 1)


async def test_repeated_keys_are_a_loss(ledger: Ledger) -> None:
    report = await bring(ledger, b'{"messages": [], "a": 1, "a": 2}\n')
    assert report.losses == {"repeated-key": 1}


async def test_other_tenant_has_its_own_threads(ledger: Ledger) -> None:
    content = lines({"messages": talk("a")})
    await bring(ledger, content)
    assert outcome(await bring(ledger.tenant("other"), content)) == (1, 0, 0, 0, 1)


async def test_reading_is_told_as_it_goes(ledger: Ledger) -> None:
    heard: list[int] = []
    content = lines({"messages": talk("a")}, {"messages": talk("b")})
    options = ImportOptions()
    await import_file.import_file(ledger, io.BytesIO(content), options, file="x", on_bytes=heard.append)
    assert heard == [len(content) // 2, len(content)]


async def test_record_over_64_mib_is_split_into_appends(ledger: Ledger) -> None:
    record = {"messages": talk(*(str(number) * 10 * 1024 * 1024 for number in range(7)))}
    assert outcome(await bring(ledger, lines(record))) == (1, 0, 0, 0, 7)
    assert await exported(ledger) == [record]


async def test_a_database_that_fails_while_more_is_planned_ends_the_import(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asyncio.all_tasks()

    async def failing(scope: Scope, new: Any) -> None:
        if any(one.thread.thread_id == "d" for one in new):
            raise StorageError("gone", retryable=True)
        await load_threads(scope, new)

    monkeypatch.setattr(new_threads, "load_threads", failing)
    records = [{"id": name, "messages": talk(name)} for name in "abcdefgh"]
    monkeypatch.setattr(new_threads, "MAX_BYTES", 2 * len(lines(records[0])))
    content = lines(*records)
    with pytest.raises(StorageError, match="gone"):
        await bring(ledger, content, thread_field="id")
    assert sorted(await texts(ledger)) == [["a"], ["b"]]
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_record_of_an_erased_thread_is_skipped_and_the_others_go_in(ledger: Ledger, dry_run: bool) -> None:
    records = [{"id": f"t{number}", "user": f"u{number % 4}", "messages": talk(f"{number}")} for number in range(20)]
    options: dict[str, Any] = {"thread_field": "id", "user_field": "user"}
    await bring(ledger, lines(*records[:12]), **options)
    await ledger.erasures.erase(("user", "u1"))
    report = await bring(ledger, lines(*records), **options, dry_run=dry_run)
    assert outcome(report) == (8, 0, 9, 0, 8)
    assert [(one.place, str(one.error)) for one in report.erased] == [
        (f"line {number + 1}", f"thread 't{number}' was erased; its id is not used again") for number in (1, 5, 9)
    ]
    assert len(await texts(ledger)) == (9 if dry_run else 17)


async def test_a_field_that_no_record_has_refuses_the_file_once(ledger: Ledger) -> None:
    records = [{"id": number, "turns": talk("a"), "meta": {"talk": talk("b")}, "tags": ["x"]} for number in range(5)]
    with pytest.raises(UnknownFormat) as caught:
        await bring(ledger, lines(*records), field="dialog")
    assert str(caught.value) == (
        "in.json, line 1, byte 0: dialog: the record has no such field; it has lists under 'turns', 'meta.talk': "
        "try --field turns (and 4 more)"
    )
    assert await texts(ledger) == []


async def test_a_record_without_the_field_that_others_have_is_a_bad_one(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"n": 1}, {"n": 2}, {"dialog": talk("a")}, {"n": 4}), field="dialog")
    assert [(failure.place, failure.problem) for failure in report.failures] == [
        (f"line {number}", "dialog: the record has no such field; name the field that holds the messages with --field")
        for number in (1, 2, 4)
    ]
    assert await texts(ledger) == [["a"]]


async def test_a_record_whose_conversation_is_broken_does_have_the_field(ledger: Ledger) -> None:
    report = await bring(ledger, lines({"n": 1}, {"dialog": [17]}), field="dialog")
    assert [failure.place for failure in report.failures] == ["line 1", "line 2"]


async def test_a_record_of_unknown_format_names_the_lists_in_it() -> None:
    async with Ledger.open(":memory:") as ledger:
        with pytest.raises(UnknownFormat, match=r"it has lists under 'turns', 'dialog box': try --field turns$"):
            await bring(ledger, lines({"turns": [{"a": 1}], "dialog box": [{"b": 2}]}), format="auto")
        with pytest.raises(UnknownFormat, match=r"it has a list under 'dialog box': try --field 'dialog box'$"):
            await bring(ledger, lines({"dialog box": [{"b": 2}]}), format="auto")


CROWDED: dict[str, tuple[Any, str]] = {
    "parts": (
        {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": [{}] * 30_000}]},
        "messages[1]",
    ),
    "calls": ({"messages": [{"role": "assistant", "tool_calls": [0] * 30_000}]}, "messages[0]"),
    "a deep value": ({"a": {"messages": [{"role": "user", "x": [[{"y": [0] * 30_000}]]}]}}, "a.messages[0]"),
    "a list of messages": ([{"role": "user", "content": [{"type": "text"}] * 30_000}], "[0]"),
}


@pytest.mark.parametrize("kind", CROWDED)
async def test_a_message_of_too_many_values_is_refused_before_a_format_looks_at_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    looked: list[int] = []
    recognise = shapes.recognise_record

    def noted(record: Any, field: str | None) -> Any:
        looked.append(len(json.dumps(record)))
        return recognise(record, field)

    monkeypatch.setattr(detect, "recognise_record", noted)
    record, place = CROWDED[kind]
    good = {"messages": [{"role": "user", "content": "hi"}]}
    content = b"\n".join(json.dumps(one).encode() for one in (good, record, good))
    report = await import_file.import_file(
        ledger, io.BytesIO(content), ImportOptions(format="auto"), file="x.jsonl", lines=True
    )
    assert (report.created, await ledger.threads.count()) == (2, 2)
    [failure] = report.failures
    assert isinstance(failure.error, DecodeError)
    assert (failure.place, failure.error.path, failure.error.record) == ("line 2", place, 1)
    assert f"{place} has more than 30,000 values" in str(failure)
    assert max(looked) < 1_000


async def test_a_long_conversation_may_have_more_values_than_a_message(ledger: Ledger) -> None:
    record = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 10} for _ in range(1_100)]}
    report = await import_file.import_file(
        ledger, io.BytesIO(json.dumps(record).encode()), ImportOptions(), file="x.json"
    )
    assert (report.created, report.failures) == (1, [])
