"""The checker finds every kind of bad history, and nothing in a good one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from chatledger import ChatMessage
from tests.conftest import Database
from tests.faults.batches import batch, links
from tests.faults.checker import Stored, check, judge, verdict
from tests.faults.recording import Append, Read, Recorder, Recording

NAMES = ("n5", "n2", "n1", "n0", "n4")  # one of each shape
LENGTHS = [len(batch(name)) for name in NAMES]


def good() -> tuple[Recording, Stored]:
    """The batches of NAMES, appended one after the other, each read by somebody afterwards."""
    recording = Recording()
    messages: list[ChatMessage] = []
    answers: dict[int, tuple[int, int]] = {}
    clock = itertools.count()
    for name in NAMES:
        began, first = next(clock), len(messages) + 1
        messages += [
            message.model_copy(update={"seq": seq, "thread_id": "t", "branch": 0, "run_id": "r"})
            for seq, message in enumerate(batch(name), first)
        ]
        answers |= {first + at: (first + call, idx) for at, (call, idx) in links(batch(name)).items()}
        last = len(messages)
        recording.appends[name] = Append(name, "t", began, 0, next(clock), "acknowledged", first, last)
        ids = [message.message_id for message in messages]
        recording.reads.append(Read("t", next(clock), next(clock), 1, ids, last))
    return recording, Stored("t", messages, answers)


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
    stored.messages = renumbered(list(stored.messages[: own("n4").start]))


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
}


@pytest.mark.parametrize(("spoil", "kind"), BAD.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_history_is_found(spoil: Callable[[Recording, Stored], None], kind: str) -> None:
    recording, stored = good()
    spoil(recording, stored)
    assert kind in {fault.kind for fault in check(recording, [stored])}


@pytest.mark.parametrize("outcome", ["open", "unknown"])
def test_an_unacknowledged_batch_may_be_stored_or_not(outcome: str) -> None:
    recording, stored = good()
    recording.appends["n4"].outcome = outcome  # type: ignore[assignment]
    recording.reads.clear()
    assert check(recording, [stored]) == []
    drop(recording, stored)
    assert check(recording, [stored]) == []


def test_appends_at_once_may_stand_in_any_order() -> None:
    recording, stored = good()
    for append in recording.appends.values():
        append.began = 0
    recording.appends["n4"].ended = 1
    recording.reads.clear()
    assert check(recording, [stored]) == []


def test_a_fork_has_what_it_shares_and_its_own() -> None:
    recording, stored = good()
    shared = own("n4").start
    fork = Stored("t", stored.messages, stored.answers, branch=1, shared=shared)
    assert {fault.kind for fault in check(recording, [stored, fork])} == {"stranger"}
    recording.appends["n4"].branch = 1
    recording.reads.pop()
    stored = Stored("t", stored.messages[:shared], stored.answers)
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
        await recorder.read("t", last=3)
        figures = await verdict(database, ledger, ["t"], recording)
        assert (figures.acknowledged, len(recording.reads)) == (5, 6)
        recording.appends["n9"] = Append("n9", "t", 0, 0, 1, "acknowledged", 1, 1)
        with pytest.raises(AssertionError, match="lost"):
            await verdict(database, ledger, ["t"], recording)
