"""Long rows are decrypted and decoded in a thread, where the event loop would otherwise do it and every caller wait."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger
from chatledger.storage.rows import messages as rows
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, user

HALF = "ä" * 600_000
LONG: dict[str, list[ChatMessage]] = {
    "texts": [user(HALF), user(HALF)],
    "a call": [user("x"), assistant(calls=[call("c1", arguments={"file": HALF + HALF})]), result("c1")],
    "keys of its own": [user("x", custom_data={"note": HALF + HALF})],
}
READS: dict[str, Callable[[Ledger], Awaitable[Any]]] = {
    "whole": lambda ledger: ledger.messages.history("t"),
    "a few": lambda ledger: ledger.messages.history("t", last=3),
    "last turns": lambda ledger: ledger.messages.history("t", last_turns=3),
    "by tokens": lambda ledger: ledger.messages.history("t", max_tokens=10_000_000),
}


async def deciding_threads(
    database: Database, monkeypatch: pytest.MonkeyPatch, messages: list[ChatMessage], read: str, **options: Any
) -> set[bool]:
    """Whether rows were decoded in the event loop's thread."""
    seen: set[bool] = set()
    decode = rows._decode

    def spy(*given: Any) -> list[ChatMessage]:
        seen.add(threading.current_thread() is threading.main_thread())
        return decode(*given)

    monkeypatch.setattr(rows, "_decode", spy)
    async with await database.open(**options) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", messages)
        seen.clear()
        found = await READS[read](ledger)
        assert [message.content for message in found] == [message.content for message in messages]
    return seen


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_long_histories_are_decoded_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch, read: str, *, encrypted: bool
) -> None:
    options = {"keys": KEYS} if encrypted else {}
    assert await deciding_threads(database, monkeypatch, LONG["texts"], read, **options) == {False}


@pytest.mark.parametrize("kind", ["a call", "keys of its own"])
async def test_each_long_column_counts(database: Database, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    assert await deciding_threads(database, monkeypatch, LONG[kind], "a few") == {False}


async def test_short_histories_stay_in_the_loop(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread would cost them more than it saves."""
    assert await deciding_threads(pg_database, monkeypatch, [user("x")], "a few") == {True}
