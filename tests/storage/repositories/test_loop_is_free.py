"""What changes thousands of messages at once is not the event loop's work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.append import attempt
from chatledger.storage.changes import record as changes
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.history import fold, path
from chatledger.storage.schema import columns
from tests.conversations import assistant, call, user


def noting(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[int]:
    """The threads in which the function is called."""
    called: list[int] = []
    plain: Callable[..., Any] = getattr(where, name)

    def noted(*given: Any, **named: Any) -> Any:
        called.append(threading.get_ident())
        return plain(*given, **named)

    monkeypatch.setattr(where, name, noted)
    return called


async def test_many_calls_are_closed_apart_from_the_event_loop(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [assistant(calls=[call(f"c{number}") for number in range(300)])])
    called = [noting(monkeypatch, attempt, name) for name in ("closing_results", "plan_append")]
    assert len((await ledger.messages.close_open_calls("t")).messages) == 300
    assert [len(one) for one in called] == [1, 1]
    assert threading.get_ident() not in (*called[0], *called[1])
    assert [[*one.findings] async for one in ledger.check("t")] == [[]]


async def test_a_branch_has_at_most_ten_thousand_open_calls(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "MOST_OPEN_CALLS", 3)
    asked = [assistant(calls=[call(f"c{number}") for number in range(3)])]
    await ledger.messages.append("t", asked, create=True, rules="lenient")
    before = await ledger.messages.history("t")
    with pytest.raises(LimitExceeded, match="open calls of a branch: 4 given, at most 3 allowed"):
        await ledger.messages.append("t", [assistant(calls=[call("c3")])], rules="lenient")
    assert (await ledger.messages.history("t")).mark == before.mark
    monkeypatch.setattr(attempt, "MOST_OPEN_CALLS", 1)  # some may be closed of too many
    await ledger.messages.append("t", [ChatMessage(role="tool", tool_call_id="c0", content="r")])
    assert len((await ledger.messages.close_open_calls("t")).messages) == 2


async def test_a_fork_behind_many_results_folds_them_apart_from_the_event_loop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.messages.append("t", [user("?"), assistant(calls=[call(f"c{n}") for n in range(200)])], create=True)
    results = [ChatMessage(role="tool", tool_call_id=f"c{number}", content="r") for number in range(200)]
    stored = await ledger.messages.append("t", [*results, user("and then?")])
    folded = noting(monkeypatch, fold, "fold")
    decoded = noting(monkeypatch, fold, "decode_messages")
    branch = await ledger.branches.fork("t", at=stored.messages[-2])
    assert branch.last_seq == 202
    assert threading.get_ident() not in (*folded, *decoded)
    assert folded


async def test_many_messages_are_removed_apart_from_the_event_loop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.threads.create("t")
    for start in (0, 900):
        await ledger.messages.append("t", [user(str(start + number)) for number in range(900)])
    stored = list(await ledger.messages.history("t"))
    read = noting(monkeypatch, path, "decode_messages")
    written = noting(monkeypatch, changes, "change_values")
    batches = noting(monkeypatch, changes, "_rows_of")
    assert await rewind_to(scope_of(ledger), "t", 0) == stored
    assert (len(written), len(batches)) == (1_800, 2)
    assert threading.get_ident() not in (*read, *written)
    assert stored[0].message_id is not None
    assert len(await ledger.messages.revisions("t", stored[0].message_id)) == 1


async def test_metadata_is_read_apart_from_the_event_loop(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await ledger.messages.append("t", [user("?")], create=True)
    for number in range(20):
        await ledger.runs.start("t", run_id=f"r{number}", metadata={"u": f"u{number % 2}", "long": "x" * 1_000})
        await ledger.feedback.record(Feedback(run_id=f"r{number}", key="k", score=1))
    read = noting(monkeypatch, columns, "decode_json")
    usage = await ledger.runs.usage("metadata.u")
    compared = await ledger.feedback.compare("k", "metadata.u")
    assert [(one.metadata, one.runs) for one in usage] == [({"u": "u0"}, 10), ({"u": "u1"}, 10)]
    assert [(one.value, one.count) for one in compared] == [("u0", 10), ("u1", 10)]
    assert len(read) >= 40
    assert threading.get_ident() not in read
