"""The checker finds every kind of bad history, and nothing in a good one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from zlib import crc32

import pytest

from chatledger import ChatMessage
from chatledger.models import CallPlace, Revision
from tests.conftest import Database
from tests.faults.batches import CHANGING, LAST, batch, ids_of, links, revised, values
from tests.faults.checker import check, judge, verdict
from tests.faults.recording import Append, Change, Read, Recorder, Recording, ValueRead
from tests.faults.stored import Stored

NAMES = ("n5", "n2", "n1", "n0", "n4")  # one of each shape
FIRST_VERSION = 1_000
PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "reliability.md"
LENGTHS = [len(batch(name)) for name in NAMES]


def good() -> tuple[Recording, Stored]:
    """The batches of NAMES, appended one after the other with their values, each read by somebody afterwards."""
    recording = Recording()
    messages: list[ChatMessage] = []
    answers: dict[int, tuple[int, int]] = {}
    said: dict[str, tuple[object, int]] = {}
    clock = itertools.count()
    for name in NAMES:
        began, first = next(clock), len(messages) + 1
        own = {at: CallPlace(seq=first + call, index=idx) for at, (call, idx) in links(batch(name)).items()}
        messages += [
            message.model_copy(
                update={"seq": first + at, "thread_id": "t", "branch": 0, "run_id": "r", "answers": own.get(at)}
            )
            for at, message in enumerate(batch(name))
        ]
        answers |= {first + at: (place.seq, place.index) for at, place in own.items()}
        last = len(messages)
        recording.appends[name] = Append(name, "t", began, 0, next(clock), "acknowledged", first, last)
        ids = [message.message_id for message in messages]
        told = {id_ or "": list(answers[seq]) for seq, id_ in enumerate(ids, 1) if seq in answers}
        recording.reads.append(Read("t", next(clock), next(clock), ids, last, answers=told))
        for key in values(name):
            said[key] = name, said.get(key, (None, FIRST_VERSION))[1] + 1
        if LAST in said:
            recording.value_reads.append(ValueRead("t", next(clock), next(clock), *said[LAST]))  # type: ignore[arg-type]
    return recording, Stored("t", messages, answers, version=len(messages), values=said)


def renumbered(messages: list[ChatMessage]) -> list[ChatMessage]:
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]


def own(name: str) -> slice:
    place = NAMES.index(name)
    return slice(sum(LENGTHS[:place]), sum(LENGTHS[: place + 1]))


def test_the_names_have_all_shapes() -> None:
    assert {crc32(name.encode()) % 5 for name in NAMES} == {0, 1, 2, 3, 4}


def test_a_good_history_has_no_fault() -> None:
    recording, stored = good()
    assert check(recording, [stored]) == []
    assert judge(recording, [stored]).acknowledged == 5


def drop(_: Recording, stored: Stored) -> None:
    stored.messages = stored.messages[: own("n4").start]
    stored.version = len(stored.messages)


def forget_thread(recording: Recording, stored: Stored) -> None:
    stored.thread = "another"


def repeat(_: Recording, stored: Stored) -> None:
    stored.messages = renumbered([*stored.messages, *stored.messages[own("n0")]])


def repeat_at_once(_: Recording, stored: Stored) -> None:
    last = list(stored.messages[own("n4")])
    stored.messages = renumbered([*stored.messages, *last])


def skip_a_seq(_: Recording, stored: Stored) -> None:
    last = stored.messages[-1]
    stored.messages = [*stored.messages[:-1], last.model_copy(update={"seq": (last.seq or 0) + 1})]


def tear(_: Recording, stored: Stored) -> None:
    stored.messages = stored.messages[:-1]


def mix(_: Recording, stored: Stored) -> None:
    messages = list(stored.messages)
    here, there = own("n1").start, own("n2").start
    messages[here], messages[there] = messages[there], messages[here]
    stored.messages = renumbered(messages)


def swap(_: Recording, stored: Stored) -> None:
    messages = list(stored.messages)
    last = messages[own("n4")]
    stored.messages = renumbered([*last, *messages[: own("n4").start]])


def alter(field: str) -> Callable[[Recording, Stored], None]:
    def one(_: Recording, stored: Stored) -> None:
        messages = list(stored.messages)
        place = next(n for n, message in enumerate(messages) if getattr(message, field))
        messages[place] = messages[place].model_copy(update={field: None})
        stored.messages = messages

    return one


def cut_text(_: Recording, stored: Stored) -> None:
    messages = list(stored.messages)
    place = next(n for n, message in enumerate(messages) if isinstance(message.content, str) and message.content)
    messages[place] = messages[place].model_copy(update={"content": messages[place].text[:-1]})
    stored.messages = messages


def drop_part(_: Recording, stored: Stored) -> None:
    messages = list(stored.messages)
    place = next(n for n, message in enumerate(messages) if isinstance(message.content, list))
    parts = messages[place].content
    assert isinstance(parts, list)
    messages[place] = messages[place].model_copy(update={"content": parts[:-1]})
    stored.messages = messages


def unlink(_: Recording, stored: Stored) -> None:
    stored.answers.popitem()


def link_elsewhere(_: Recording, stored: Stored) -> None:
    seq = max(stored.answers)
    stored.answers[seq] = (stored.answers[seq][0], 7)


def nobody_asked(recording: Recording, _: Stored) -> None:
    del recording.appends["n1"]


def was_refused(recording: Recording, _: Stored) -> None:
    recording.appends["n1"].outcome = "refused"


def told_elsewhere(recording: Recording, _: Stored) -> None:
    recording.appends["n1"].first = 1


def began_later(recording: Recording, _: Stored) -> None:
    """The last ended before the first began."""
    recording.reads.clear()
    recording.appends["n4"].began, recording.appends["n4"].ended = -2, -1


def other_read(recording: Recording, _: Stored) -> None:
    recording.reads[2].ids[1] = "n9/0"


def no_answer_on_a_page(recording: Recording, _: Stored) -> None:
    recording.reads[4].answers.popitem()


def another_answer_on_a_page(recording: Recording, _: Stored) -> None:
    recording.reads[4].answers["n1/2"] = [1, 0]


def answer_nothing(_: Recording, stored: Stored) -> None:
    stored.messages = [message.model_copy(update={"answers": None}) for message in stored.messages]


def lose_a_value(_: Recording, stored: Stored) -> None:
    del stored.values["of n1"]


def keep_a_value_alone(recording: Recording, stored: Stored) -> None:
    stored.values["of n8"] = "n8", 1


def alter_a_value(_: Recording, stored: Stored) -> None:
    stored.values["of n1"] = "n2", FIRST_VERSION


def miss_a_batch_in_the_last_value(_: Recording, stored: Stored) -> None:
    stored.values[LAST] = "n2", stored.values[LAST][1] - 1


def write_a_value_twice(_: Recording, stored: Stored) -> None:
    stored.values[LAST] = "n1", stored.values[LAST][1] + 1


def version_that_goes_back(recording: Recording, _: Stored) -> None:
    recording.value_reads[-1].version -= 1


def stale_value(recording: Recording, _: Stored) -> None:
    read = recording.value_reads[-1]
    read.name, read.version = "n5", FIRST_VERSION + 1


def gap_in_a_read(recording: Recording, _: Stored) -> None:
    del recording.reads[2].ids[1]


def stale_read(recording: Recording, _: Stored) -> None:
    recording.reads[3].ids.pop()
    recording.reads[3].version -= 1


def read_that_goes_back(recording: Recording, _: Stored) -> None:
    for append in recording.appends.values():
        append.outcome = "open"
    recording.reads[4].ids, recording.reads[4].version = [], 0


BAD = {
    drop: "lost",
    forget_thread: "lost",
    repeat: "twice",
    repeat_at_once: "twice",
    skip_a_seq: "gap",
    tear: "torn",
    mix: "torn",
    swap: "misplaced",
    alter("tool_calls"): "altered",
    alter("reasoning"): "altered",
    alter("custom_data"): "altered",
    alter("response_metadata"): "altered",
    cut_text: "altered",
    drop_part: "altered",
    unlink: "altered",
    link_elsewhere: "altered",
    nobody_asked: "stranger",
    was_refused: "ghost",
    told_elsewhere: "misplaced",
    began_later: "order",
    other_read: "read",
    gap_in_a_read: "read",
    stale_read: "read",
    read_that_goes_back: "read",
    no_answer_on_a_page: "read",
    another_answer_on_a_page: "read",
    answer_nothing: "altered",
    lose_a_value: "value",
    keep_a_value_alone: "value",
    alter_a_value: "value",
    miss_a_batch_in_the_last_value: "value",
    write_a_value_twice: "value",
    version_that_goes_back: "value",
    stale_value: "value",
}


@pytest.mark.parametrize(("spoil", "kind"), BAD.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_history_is_found(spoil: Callable[[Recording, Stored], None], kind: str) -> None:
    recording, stored = good()
    spoil(recording, stored)
    assert kind in {fault.kind for fault in check(recording, [stored])}


# --- A thread whose messages are popped and revised -------------------------------------------------------------------

CHANGED = f"{CHANGING}t"


def changed() -> tuple[Recording, Stored]:
    """p0 and p1 are appended, the first message of p0 is revised, the last one of p1 is popped, p2 is appended, and its
    last message is popped too. Each state is read by somebody.
    """
    recording, messages = Recording(), list[ChatMessage]()
    clock = itertools.count()
    changes: list[Revision] = []
    version = 0

    def change(name: str, kind: Literal["popped", "revised"], message: ChatMessage) -> None:
        began, at = next(clock), datetime.now(UTC)
        changes.append(Revision(kind=kind, message=message, branch=0, seq=version, created_at=at))
        ended, id_ = next(clock), message.message_id
        recording.changes[name] = Change(name, kind, CHANGED, began, 0, ended, "acknowledged", id_)

    for name in ("p0", "p1", "a revision", "a pop", "p2", "another pop"):
        if name.startswith("p"):
            began, ids = next(clock), ids_of(name, CHANGED)
            for id_, message in zip(ids, batch(name, changing=True), strict=True):
                version += 1
                messages.append(message.model_copy(update={"message_id": id_, "seq": version}))
            first, last = version - len(ids) + 1, version
            recording.appends[name] = Append(name, CHANGED, began, 0, next(clock), "acknowledged", first, last)
        else:
            version += 1
            if name.endswith("pop"):
                change(name, "popped", messages.pop())
            else:
                change(name, "revised", messages[0])
                messages[0] = revised(messages[0], name)
        ids = [message.message_id for message in messages]
        recording.reads.append(Read(CHANGED, next(clock), next(clock), ids, version))
    said: dict[str, tuple[object, int]] = {f"of {name}": (name, 1) for name in recording.appends if values(name)}
    if said:
        last_name = [name for name in recording.appends if values(name)][-1]
        said[LAST] = last_name, FIRST_VERSION
    return recording, Stored(CHANGED, messages, {}, version=version, changes=changes, values=said)


def test_a_changed_history_has_no_fault() -> None:
    recording, stored = changed()
    assert check(recording, [stored]) == []
    assert len(stored.messages) == stored.version - 2 - 3


def use_a_position_again(_: Recording, stored: Stored) -> None:
    """The message takes the position of the one that was popped before it."""
    messages = list(stored.messages)
    messages[-1] = messages[-1].model_copy(update={"seq": 4})
    stored.messages = messages


def forget_a_change(_: Recording, stored: Stored) -> None:
    stored.changes = stored.changes[1:]


def forget_a_pop(_: Recording, stored: Stored) -> None:
    stored.changes = [stored.changes[0], *stored.changes[2:]]


def keep_what_was_popped(_: Recording, stored: Stored) -> None:
    stored.messages = [*stored.messages[:3], stored.changes[1].message, *stored.messages[3:]]  # type: ignore[list-item]


def pop_another(_: Recording, stored: Stored) -> None:
    """Not the newest: the first of p1 left, and the last of it stayed."""
    stayed, left = stored.changes[1].message, stored.messages[2]
    stored.changes = [stored.changes[0], stored.changes[1].model_copy(update={"message": left}), stored.changes[2]]
    stored.messages = [*stored.messages[:2], stayed, *stored.messages[3:]]  # type: ignore[list-item]


def pop_for_two(recording: Recording, _: Stored) -> None:
    recording.changes["third pop"] = replace(recording.changes["a pop"], name="third pop")


def pop_for_nobody(recording: Recording, _: Stored) -> None:
    del recording.changes["a pop"]


def revise_for_nobody(recording: Recording, _: Stored) -> None:
    del recording.changes["a revision"]


def revise_though_refused(recording: Recording, _: Stored) -> None:
    recording.changes["a revision"].outcome = "refused"


def lose_a_revision(_: Recording, stored: Stored) -> None:
    stored.messages = [stored.changes[0].message, *stored.messages[1:]]  # type: ignore[list-item]


def keep_other_words(_: Recording, stored: Stored) -> None:
    """The record does not hold the earlier form of the message."""
    kept = stored.changes[0].message
    assert kept is not None
    other = kept.model_copy(update={"content": "other"})
    stored.changes = [stored.changes[0].model_copy(update={"message": other}), *stored.changes[1:]]


def revise_too_much(_: Recording, stored: Stored) -> None:
    stored.messages = [stored.messages[0].model_copy(update={"custom_data": {"a": 1}}), *stored.messages[1:]]


def read_what_was_popped(recording: Recording, _: Stored) -> None:
    recording.reads[3].ids = recording.reads[2].ids


def read_after_a_pop_as_before(recording: Recording, _: Stored) -> None:
    recording.reads[3].ids, recording.reads[3].version = recording.reads[2].ids, recording.reads[2].version


BAD_CHANGES = {
    use_a_position_again: "gap",
    forget_a_change: "gap",
    forget_a_pop: "lost",
    keep_what_was_popped: "gap",
    pop_another: "change",
    pop_for_two: "twice",
    pop_for_nobody: "stranger",
    revise_for_nobody: "stranger",
    revise_though_refused: "ghost",
    lose_a_revision: "lost",
    keep_other_words: "altered",
    revise_too_much: "change",
    read_what_was_popped: "read",
    read_after_a_pop_as_before: "read",
}


@pytest.mark.parametrize(("spoil", "kind"), BAD_CHANGES.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_changed_history_is_found(spoil: Callable[[Recording, Stored], None], kind: str) -> None:
    recording, stored = changed()
    spoil(recording, stored)
    assert kind in {fault.kind for fault in check(recording, [stored])}


def test_an_unacknowledged_pop_may_be_done_or_not() -> None:
    recording, stored = changed()
    recording.changes["a pop"].outcome, recording.changes["a pop"].message_id = "unknown", None
    recording.changes["never"] = Change("never", "popped", CHANGED, 0)
    assert check(recording, [stored]) == []


def test_the_page_states_the_number_of_bad_histories() -> None:
    assert f"corrupt a valid history in {len(BAD) + len(BAD_CHANGES)} ways" in PAGE.read_text()


# --- Good histories that look odd -------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["open", "unknown"])
def test_an_unacknowledged_batch_may_be_stored_or_not(outcome: str) -> None:
    recording, stored = good()
    recording.appends["n4"].outcome = outcome  # type: ignore[assignment]
    recording.reads.clear()
    assert check(recording, [stored]) == []
    drop(recording, stored)
    assert check(recording, [stored]) == []


def test_appends_at_once_may_have_any_order() -> None:
    recording, stored = good()
    for append in recording.appends.values():
        append.began = 0
    recording.appends["n4"].ended = 1
    recording.reads.clear()
    assert check(recording, [stored]) == []


def test_a_fork_has_what_it_shares_and_its_own() -> None:
    recording, stored = good()
    shared = own("n4").start
    fork = replace(stored, branch=1, shared=shared)
    assert {fault.kind for fault in check(recording, [stored, fork])} == {"stranger"}
    recording.appends["n4"].branch = 1
    recording.reads.pop()
    stored = replace(stored, messages=stored.messages[:shared], version=shared)
    assert check(recording, [stored, fork]) == []


def test_a_failing_history_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.checker.FAILURES", tmp_path)
    recording, stored = good()
    drop(recording, stored)
    with pytest.raises(AssertionError, match=r"seed 7.*\n.*lost in t/0: n4"):
        judge(recording, [stored], seed=7)
    again = Recording()
    for line in (tmp_path / "7.jsonl").read_text().splitlines():
        again.take(line)
    assert check(again, [stored]) == check(recording, [stored])


async def test_a_recorder_records_what_a_database_keeps(database: Database) -> None:
    recording = Recording()
    async with database.open() as ledger:
        await ledger.threads.create("t")
        recorder = Recorder(ledger, recording)
        for name in NAMES:
            await recorder.append(name, "t")
            await recorder.read("t")
            await recorder.read_value("t")
        await recorder.read("t", last=3)
        figures = await verdict(database, ledger, ["t"], recording)
        assert (figures.acknowledged, len(recording.reads), len(recording.value_reads)) == (5, 6, 5)
        recording.appends["n9"] = Append("n9", "t", 0, 0, 1, "acknowledged", 1, 1)
        with pytest.raises(AssertionError, match="lost"):
            await verdict(database, ledger, ["t"], recording)


async def test_a_recorder_records_what_changes(database: Database) -> None:
    recording = Recording()
    async with database.open() as ledger:
        await ledger.threads.create(CHANGED)
        recorder = Recorder(ledger, recording)
        for name in NAMES:
            await recorder.append(name, CHANGED)
            first, *_, last = (await ledger.messages.history(CHANGED)).messages[-2:]
            await recorder.revise(f"revision of {name}", CHANGED, first)
            await recorder.pop(f"pop after {name}", CHANGED)
            await recorder.read(CHANGED)
        await recorder.revise("of what left", CHANGED, last)
        assert recording.changes["of what left"].outcome == "refused"
        await verdict(database, ledger, [CHANGED], recording)
        recording.changes["pop after n0"].message_id = "another"
        with pytest.raises(AssertionError, match="lost"):
            await verdict(database, ledger, [CHANGED], recording)
